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
    """Return architectures and solvers; a target is an `iclbench.Architecture` class."""


@hookspec
def iclbench_tasks() -> list[Entry]:
    """Return tasks; a target is an `iclbench.Task` class."""


@hookspec
def iclbench_recipes() -> list[Entry]:
    """Return recipes that any task may use; a target is an `iclbench.Recipe`."""


@hookspec
def iclbench_suites() -> list[Entry]:
    """Return suites of boards; a target is an `iclbench.Suite`, or the Path of a suite's file."""


@hookspec
def iclbench_metrics() -> list[Entry]:
    """Return metrics that apply to many models; a target is an `iclbench.Metric` class."""


@hookspec
def iclbench_graders() -> list[Entry]:
    """Return graders of generated text; a target is an `iclbench.Grader` class."""


@hookspec
def iclbench_executors() -> list[Entry]:
    """Return executors of sweeps; a target is an `iclbench.Executor` class."""


@hookspec
def iclbench_trackers() -> list[Entry]:
    """Return trackers of runs; a target is an `iclbench.Tracker` class."""


@hookspec
def iclbench_commands() -> list[Entry]:
    """Return additional commands of `iclbench`; a target is a function that typer can run."""


@hookspec
def iclbench_run_started(spec: ResolvedSpec) -> None:
    """Called once when a run starts, before training and evaluation."""


@hookspec
def iclbench_training_step(spec: ResolvedSpec, step: int, loss: list[float], steps: int) -> None:
    """Called after `step` of `steps`; `loss` is each seed's mean since the last point."""


@hookspec
def iclbench_run_finished(spec: ResolvedSpec, record: Record) -> None:
    """Called when a run's record has been written."""


@hookspec
def iclbench_run_failed(spec: ResolvedSpec, error: BaseException) -> None:
    """Called when a started run ends without a record, also when it was interrupted."""
