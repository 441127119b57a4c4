"""Word problems of finite groups: the product of all elements so far."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_state_tracking"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """word-problem."""
    return [
        Entry("word-problem", "products of group elements at every position: parity, Z60, A5, S5",
              f"{_HOME}.task:WordProblem"),
    ]  # fmt: skip


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """group-product."""
    return [
        Entry("group-product", "multiplies the elements of a word problem exactly",
              f"{_HOME}.solver:GroupProduct"),
    ]  # fmt: skip
