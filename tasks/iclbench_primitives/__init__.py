"""Primitives of numerical algorithms: read, affine, multiply, square."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_primitives.tasks"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """read, affine, multiply and square."""
    return [
        Entry("read", "copy row i of a sequence to row j (Liu et al. 2025)", f"{_HOME}:Read"),
        Entry("affine", "a fixed linear function of each row of a sequence (Liu et al. 2025)",
              f"{_HOME}:Affine"),
        Entry("multiply", "element-wise product of the halves of each row (Liu et al. 2025)",
              f"{_HOME}:Multiply"),
        Entry("square", "the square of every entry of a sequence (Liu et al. 2025)",
              f"{_HOME}:Square"),
    ]  # fmt: skip
