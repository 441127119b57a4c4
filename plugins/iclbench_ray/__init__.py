"""The executor `ray`: programs of a sweep as tasks of a Ray cluster."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_executors() -> list[Entry]:
    """Provide ray."""
    return [
        Entry("ray", "a Ray cluster, or Ray on this machine (extra `ray`)",
              "iclbench_ray.executor:Ray"),
    ]  # fmt: skip
