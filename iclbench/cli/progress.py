"""Progress of runs: a bar on a terminal, plain lines elsewhere. An observer of the run hooks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ..hookspecs import hookimpl

if TYPE_CHECKING:
    from ..api.record import Record
    from ..api.spec import ResolvedSpec

PLAIN_SECONDS = 10.0


class ProgressDisplay:
    """Shows each run as it goes; use as a context manager."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars: dict[str, TaskID] = {}
        self._last_line = 0.0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} steps"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[loss]}"),
            console=self._console,
            transient=True,
        )

    def __enter__(self) -> ProgressDisplay:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    @hookimpl
    def iclbench_run_started(self, spec: ResolvedSpec) -> None:
        """Open the run's bar, or print a line."""
        label = f"{spec.model} on {spec.task}"
        if spec.origin != "trained":
            return
        if self._console.is_terminal:
            self._bars[spec.id] = self._progress.add_task(
                label, total=spec.recipe_args["steps"], loss=""
            )
        else:
            self._say(
                f"{label}: training {len(spec.seeds)} seeds, {spec.recipe_args['steps']} steps"
            )

    @hookimpl
    def iclbench_training_step(self, spec: ResolvedSpec, step: int, loss: list[float]) -> None:
        """Move the bar; elsewhere a line now and then."""
        text = "loss " + " ".join(f"{value:.2e}" for value in loss[:4])
        if spec.id in self._bars:
            self._progress.update(self._bars[spec.id], completed=step, loss=text)
        elif time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            total = spec.recipe_args["steps"]
            self._say(f"{spec.model} on {spec.task}: step {step} of {total}, {text}")

    @hookimpl
    def iclbench_run_finished(self, spec: ResolvedSpec, record: Record) -> None:
        """Close the bar and say what came out."""
        if spec.id in self._bars:
            self._progress.remove_task(self._bars.pop(spec.id))
        ranking = record.ranking
        value = getattr(record.metrics[ranking.metric], ranking.statistic)
        shown = "not finite" if value is None else f"{value:.2e}"
        self._say(f"{spec.model} on {spec.task}: {ranking.statistic} {ranking.metric} {shown}")
        for seed in record.seeds:
            if seed.diverged_at is not None:
                self._say(f"  seed {seed.seed} diverged at step {seed.diverged_at}")
