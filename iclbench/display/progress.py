"""Progress of runs, from the run hooks: a display on a terminal or in a notebook, lines elsewhere.

The display says which run of how many it is, the phase, the loss and the time left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..api.budget import Budget
from ..hookspecs import hookimpl
from .views import NotebookView, PlainView, State, TerminalView, View, in_notebook, on_terminal

if TYPE_CHECKING:
    from ..api.record import Record
    from ..api.spec import ResolvedSpec


def training_cost(spec: ResolvedSpec) -> str:
    """What a training takes: its seeds, and the steps or the budget of each."""
    seeds = f"{len(spec.seeds)} seed{'s' if len(spec.seeds) != 1 else ''}"
    if spec.budget is None:
        return f"{seeds} for {spec.recipe_args.get('steps')} steps"
    budget = Budget.parse(spec.budget)
    total = budget.times(len(spec.seeds))
    return f"{seeds} for {budget} of {budget.kind} each, {total} in all"


class ProgressDisplay:
    """Shows the progress of `total` runs, one after another; use as a context manager."""

    def __init__(self, total: int = 1) -> None:
        self.total = total
        self.number = 0
        self._view: View = PlainView()
        self._state: State | None = None

    def __enter__(self) -> ProgressDisplay:
        if in_notebook():
            self._view = NotebookView()
        elif on_terminal():
            self._view = TerminalView()
        return self

    def __exit__(self, *_: object) -> None:
        self._view.close()

    def begin(self, number: int, name: str, phase: str = "preparing") -> None:
        """Say which of the runs is next."""
        self.number = number
        self._state = State(name, number, self.total, phase)
        self._view.show(self._state)

    @hookimpl
    def iclbench_run_started(self, spec: ResolvedSpec) -> None:
        """Show a run; of one that trains, also what its training takes."""
        name = f"{spec.model} on {spec.task}"
        is_trained = spec.origin == "trained"
        phase = "preparing the training" if is_trained else "evaluating"
        self._state = State(name, max(self.number, 1), self.total, phase)
        self._state.steps = spec.recipe_args.get("steps") if is_trained else None
        if is_trained and isinstance(self._view, PlainView):
            self._view.line(f"{self._state.title}: training {training_cost(spec)}")
        self._view.show(self._state)

    @hookimpl
    def iclbench_training_step(
        self, spec: ResolvedSpec, step: int, loss: list[float], steps: int
    ) -> None:
        """Show the step, the loss and the time left."""
        if self._state is not None:
            self._state.advance(step, steps, loss)
            self._view.show(self._state)

    @hookimpl
    def iclbench_run_finished(self, spec: ResolvedSpec, record: Record) -> None:
        """Print the result."""
        ranking = record.ranking
        value = ranking.score(record.metrics[ranking.metric])
        shown = "not finite" if value is None else f"{value:.4g}"
        name = f"{spec.model} on {spec.task}"
        self._view.line(f"{name}: {ranking.statistic} of {ranking.metric} {shown}")
        for seed in record.seeds:
            if seed.diverged_at is not None:
                self._view.line(f"  seed {seed.seed} diverged at step {seed.diverged_at}")
