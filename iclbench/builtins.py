"""What the harness itself provides: recipes for any task, and the local executor."""

from .hookspecs import hookimpl
from .plugins import Entry


@hookimpl
def iclbench_recipes() -> list[Entry]:
    """smoke and quick."""
    return [
        Entry("smoke", "a few seconds, to see that everything runs", "iclbench.recipes:SMOKE"),
        Entry("quick", "about a minute a model on two cores", "iclbench.recipes:QUICK"),
    ]


@hookimpl
def iclbench_executors() -> list[Entry]:
    """local."""
    return [Entry("local", "this process, or one process a core", "iclbench.executors.local:Local")]
