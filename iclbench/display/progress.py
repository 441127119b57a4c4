"""Progress of runs, from the run hooks: a display on a terminal or in a notebook, lines elsewhere.

The display says which run of how many it is, the phase, the loss and the time left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from ..api.budget import Budget
from ..api.executor import JobListener
from ..api.spec import ACTIONS
from ..console import counted
from ..hookspecs import hookimpl
from ..leaderboards.formats import NOT_FINITE
from ..plugins import host
from .views import (
    JOB_SECONDS,
    NotebookView,
    PlainView,
    State,
    TerminalView,
    View,
    in_notebook,
    on_terminal,
)

if TYPE_CHECKING:
    from ..api.record import Record
    from ..api.spec import ResolvedSpec


def training_cost(spec: ResolvedSpec) -> str:
    """What a training takes: its seeds, and the steps or the budget of each."""
    count = len(spec.seeds)
    seeds = counted(count, "seed")
    if spec.budget is None:
        return f"{seeds} for {spec.recipe_args['steps']:,} steps"
    budget = Budget.parse(spec.budget)
    if count == 1:
        return f"{seeds} for {budget} of {budget.kind}"
    return f"{seeds} × {budget} = {budget.times(count)} of {budget.kind}"


def action_of(spec: ResolvedSpec) -> str:
    """What a run does, with what its training takes."""
    if spec.origin == "trained":
        return f"train {training_cost(spec)}"
    return ACTIONS[spec.origin]


class ProgressDisplay(JobListener):
    """Shows the progress of `total` runs, or of jobs of runs; use as a context manager.

    It listens to run hooks (`host().observing`), and to an executor as its `listener`. Runs of this
    process belong to the job that has started last.
    """

    def __init__(self, total: int = 1) -> None:
        self.total = total
        self.number = 0
        self._view: View = PlainView()
        #: What goes on, by the job's index; a run outside any job has the key None.
        self._states: dict[int | None, State] = {}
        self._job: int | None = None
        self._are_jobs = False

    def __enter__(self) -> ProgressDisplay:
        if in_notebook():
            self._view = NotebookView()
        elif on_terminal():
            self._view = TerminalView()
        return self

    def __exit__(self, *_: object) -> None:
        self._view.close()

    def _show(self) -> None:
        self._view.show(list(self._states.values()))

    def begin(self, number: int, name: str, phase: str = "preparing") -> None:
        """Say which of the runs is next; 0 for what comes before any."""
        self.number = number
        self._states = {None: State(name, number, self.total, phase)}
        self._show()

    def _name(self, job: int | None, spec: ResolvedSpec) -> str:
        """What `begin` called a run, which may be on a board that is not called like its task."""
        begun = self._states.get(None)
        if begun is not None and job is None and not self._are_jobs:
            return begun.name
        return f"{spec.model} on {spec.task}"

    def line(self, text: str) -> None:
        """Print a line that stays, on standard error."""
        self._view.line(text)

    def jobs_begin(self, count: int) -> None:
        """See `JobListener`."""
        self.total, self._are_jobs, self._states = count, True, {}
        if isinstance(self._view, PlainView):
            self._view = PlainView(JOB_SECONDS)

    def job_started(self, index: int) -> None:
        """See `JobListener`."""
        self._job = index
        self._states[index] = State("", index + 1, self.total, "starting")
        self._show()

    def job_called(self, index: int, hook: str, values: Mapping[str, Any]) -> None:
        """See `JobListener`."""
        if hook == "iclbench_run_started":
            self._run_started(index, values["spec"])
        elif hook == "iclbench_training_step":
            self._advance(index, values["step"], values["steps"], values["loss"])

    def job_ended(self, index: int) -> None:
        """See `JobListener`."""
        self._states.pop(index, None)
        self._job = None
        self._show()

    @hookimpl
    def iclbench_run_started(self, spec: ResolvedSpec) -> None:
        """Show a run; of one that trains, also what its training takes."""
        self._run_started(self._job, spec)

    def _run_started(self, job: int | None, spec: ResolvedSpec) -> None:
        is_trained = spec.origin == "trained"
        phase = "preparing the training" if is_trained else "evaluating"
        number = max(self.number, 1) if job is None else job + 1
        state = State(self._name(job, spec), number, self.total, phase)
        before = self._states.get(job)
        is_first = before is None or job is None or before.phase != phase
        if is_trained and not is_first:
            # The program trains several runs together.
            assert before is not None
            state.name, state.more = before.name, before.more + 1
        state.steps = spec.recipe_args.get("steps") if is_trained else None
        self._states[job] = state
        if is_trained and not self._are_jobs and isinstance(self._view, PlainView):
            self._view.line(f"{state.title}: training {training_cost(spec)}")
        self._show()

    @hookimpl
    def iclbench_training_step(
        self, spec: ResolvedSpec, step: int, loss: list[float], steps: int
    ) -> None:
        """Show the step, the loss and the time left."""
        self._advance(self._job, step, steps, loss)

    def _advance(self, job: int | None, step: int, steps: int, loss: list[float]) -> None:
        if job in self._states:
            self._states[job].advance(step, steps, loss)
            self._show()

    @hookimpl
    def iclbench_run_finished(self, spec: ResolvedSpec, record: Record) -> None:
        """Print the result; of jobs, the executor's user says how they ended."""
        if self._are_jobs:
            return
        ranking = record.ranking
        shown = NOT_FINITE if record.score is None else f"{record.score:.4g}"
        name = self._name(self._job, spec)
        self._view.line(f"{name}: {ranking.statistic} of {ranking.metric} {shown}")
        for seed in record.seeds:
            if seed.diverged_at is not None:
                self._view.line(f"  seed {seed.seed} diverged at step {seed.diverged_at}")


@contextmanager
def progress_of_runs(total: int, number: int, name: str) -> Iterator[ProgressDisplay]:
    """A display of runs in this process: the one of this number, or 0 for what comes before any."""
    with ProgressDisplay(total) as display:
        display.begin(number, name)
        with host().observing(display, "progress"):
            yield display


def progress_of_jobs(what: str) -> AbstractContextManager[ProgressDisplay]:
    """A display for an executor's `listener`; until jobs start, it says what is prepared."""
    return progress_of_runs(1, 0, what)
