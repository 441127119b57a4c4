"""Variables that Slurm's commands and jobs must not inherit from the process that submits.

That process may itself be a job, whose variables describe its allocation; and a shell may set
options of sbatch, which would win over those that the user gives iclbench.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

#: Options of sbatch by which jobs are found, stopped, logged and continued.
OURS = frozenset({"job_name", "array", "signal", "output", "error", "open_mode", "requeue",
                  "no_requeue", "time", "wait"})  # fmt: skip
#: How variables of a job, and options of the commands, begin …
INHERITED = ("SLURM_", "SLURMD_", "SRUN_", "SQUEUE_", "SCANCEL_", "SUBMITIT_")
#: … except those that say which cluster is meant, and who asks.
KEPT = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT"})
#: Variables of sbatch that are not named like the option.
SBATCH = {"time": "TIMELIMIT", "array": "ARRAY_INX", "mem": "MEM_PER_NODE"}


def environment_of_commands() -> dict[str, str]:
    """The environment without what describes a job, or changes what a command does."""
    return {name: value for name, value in os.environ.items() if not _is_inherited(name)}


@contextmanager
def without_inherited(parameters: Mapping[str, Any]) -> Iterator[None]:
    """Within the block, submit without inherited variables and those that `parameters` answer.

    A variable of sbatch for another option, such as SBATCH_ACCOUNT, stays the user's default.
    """
    further = parameters.get("additional_parameters", {})
    options = OURS.union(parameters, (name.replace("-", "_") for name in further))
    answered = {f"SBATCH_{SBATCH.get(name, name.upper())}" for name in options}
    if "cpus_per_task" in parameters:
        answered.add("OMP_NUM_THREADS")  # many login nodes set 1; a line of `setup` still counts
    dropped = [name for name in os.environ if _is_inherited(name) or name in answered]
    values = {name: os.environ.pop(name) for name in dropped}
    try:
        yield
    finally:
        os.environ.update(values)


def _is_inherited(name: str) -> bool:
    return name.startswith(INHERITED) and name not in KEPT
