"""The executor `slurm`: programs of a sweep as job arrays of a Slurm cluster."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_executors() -> list[Entry]:
    """Provide slurm."""
    return [
        Entry("slurm", "a Slurm cluster, by job arrays (extra `slurm`)",
              "iclbench_slurm.executor:Slurm"),
    ]  # fmt: skip
