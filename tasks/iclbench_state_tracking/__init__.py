"""Word problems of finite groups: the product of all elements so far."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_state_tracking"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """word-problem."""
    return [
        Entry("word-problem", "running products in a finite group: parity, Z60, A5, S5",
              f"{_HOME}.task:WordProblem"),
    ]  # fmt: skip


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """group-product."""
    return [
        Entry("group-product", "exact solver of word-problem: multiplies the group elements",
              f"{_HOME}.solver:GroupProduct"),
    ]  # fmt: skip
