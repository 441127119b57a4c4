"""Primitives of numerical algorithms: read, affine, multiply, square."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_primitives.tasks"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """read, affine, multiply and square."""
    return [
        Entry("read", "copy row i of a sequence to row j (least_squares, eq. 5)", f"{_HOME}:Read"),
        Entry("affine", "a linear function of every row (least_squares, eq. 6)",
              f"{_HOME}:Affine"),
        Entry("multiply", "element-wise product of each row's halves (least_squares, eq. 7)",
              f"{_HOME}:Multiply"),
        Entry("square", "the square of every entry (least_squares, eq. 8)", f"{_HOME}:Square"),
    ]  # fmt: skip
