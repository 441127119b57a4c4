"""In-context solution of linear systems of one size or several."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """linear-system."""
    return [
        Entry(
            "linear-system",
            "solve symmetric positive definite systems Ax = b of one or several sizes",
            "iclbench_linear_systems.task:LinearSystems",
        )
    ]
