"""The hooks of iclbench. Catalog hooks return a list of `Entry`; run hooks return nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    from .api.entry import Entry
    from .api.record import Record
    from .api.spec import ResolvedSpec

hookspec = HookspecMarker("iclbench")
hookimpl = HookimplMarker("iclbench")


@hookspec
def iclbench_architectures() -> list[Entry]:
    """Return the architectures and solvers, each an `iclbench.Architecture` class."""


@hookspec
def iclbench_tasks() -> list[Entry]:
    """Return the tasks, each an `iclbench.Task` class."""


@hookspec
def iclbench_recipes() -> list[Entry]:
    """Return the recipes that any task may use, each an `iclbench.Recipe`."""


@hookspec
def iclbench_metrics() -> list[Entry]:
    """Return metrics that apply to any model of a kind, each an `iclbench.Metric` class."""


@hookspec
def iclbench_graders() -> list[Entry]:
    """Return graders of what a model writes, each an `iclbench.Grader` class."""


@hookspec
def iclbench_executors() -> list[Entry]:
    """Return executors for sweeps, each an `iclbench.Executor` class."""


@hookspec
def iclbench_commands() -> list[Entry]:
    """Return further verbs of the command line, each a function that typer can run."""


@hookspec
def iclbench_run_started(spec: ResolvedSpec) -> None:
    """Act when a run starts; called once, before anything is trained or evaluated."""


@hookspec
def iclbench_training_step(spec: ResolvedSpec, step: int, loss: list[float]) -> None:
    """Act on training progress: `loss` is the mean since the last call, one value a seed."""


@hookspec
def iclbench_run_finished(spec: ResolvedSpec, record: Record) -> None:
    """Act when a run's record has been written."""


@hookspec
def iclbench_run_failed(spec: ResolvedSpec, error: Exception) -> None:
    """Act when a run that had started ended without a record."""
