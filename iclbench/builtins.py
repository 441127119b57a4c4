"""What the harness itself provides: recipes for any task, and the local executor."""

from .api.entry import Entry
from .hookspecs import hookimpl


@hookimpl
def iclbench_recipes() -> list[Entry]:
    """smoke and quick."""
    return [
        Entry("smoke", "a few seconds, to see that everything runs", "iclbench.api.recipe:SMOKE"),
        Entry("quick", "about a minute a model on two cores", "iclbench.api.recipe:QUICK"),
    ]


@hookimpl
def iclbench_executors() -> list[Entry]:
    """local."""
    return [
        Entry(
            "local", "this process, or one process a core", "iclbench.sweeps.executors.local:Local"
        )
    ]
