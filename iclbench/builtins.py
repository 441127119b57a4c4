"""The harness's own entries: recipes for any task, and the local executor."""

from .api.entry import Entry
from .hookspecs import hookimpl


@hookimpl
def iclbench_recipes() -> list[Entry]:
    """Provide smoke and quick."""
    return [
        Entry("smoke", "smoke test: a few seconds, not a benchmark", "iclbench.api.recipe:SMOKE"),
        Entry("quick", "about a minute for five seeds on two cores", "iclbench.api.recipe:QUICK"),
    ]


@hookimpl
def iclbench_executors() -> list[Entry]:
    """Provide local."""
    return [
        Entry("local", "this process, or one process per core",
              "iclbench.sweeps.executors.local:Local"),
    ]  # fmt: skip
