"""Progress of runs, from the run hooks: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ..hookspecs import hookimpl
from .common import training_cost

if TYPE_CHECKING:
    from ..api.record import Record
    from ..api.spec import ResolvedSpec

#: Shortest time between two plain lines about training.
PLAIN_SECONDS = 10.0


class ProgressDisplay:
    """Shows the progress of each run; use as a context manager."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars: dict[str, TaskID] = {}
        self._last_line = 0.0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[steps]}"),
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

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    @hookimpl
    def iclbench_run_started(self, spec: ResolvedSpec) -> None:
        """Add a bar for a run that trains, or print a line."""
        label = f"{spec.model} on {spec.task}"
        if spec.origin != "trained":
            return
        if self._console.is_terminal:
            # A budget's steps are known once training begins.
            total = spec.recipe_args.get("steps")
            self._bars[spec.id] = self._progress.add_task(label, total=total, steps="", loss="")
        else:
            self._print(f"{label}: training {training_cost(spec)}")

    @hookimpl
    def iclbench_training_step(
        self, spec: ResolvedSpec, step: int, loss: list[float], steps: int
    ) -> None:
        """Advance the bar, or print a line every few seconds."""
        text = "loss " + " ".join(f"{value:.2e}" for value in loss[:4])
        if spec.id in self._bars:
            done = f"{step}/{steps} steps"
            bar = self._bars[spec.id]
            self._progress.update(bar, completed=step, total=steps, steps=done, loss=text)
        elif time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            self._print(f"{spec.model} on {spec.task}: step {step} of {steps}, {text}")

    @hookimpl
    def iclbench_run_finished(self, spec: ResolvedSpec, record: Record) -> None:
        """Remove the bar and print the result."""
        if spec.id in self._bars:
            self._progress.remove_task(self._bars.pop(spec.id))
        ranking = record.ranking
        value = ranking.score(record.metrics[ranking.metric])
        shown = "not finite" if value is None else f"{value:.4g}"
        self._print(f"{spec.model} on {spec.task}: {ranking.statistic} of {ranking.metric} {shown}")
        for seed in record.seeds:
            if seed.diverged_at is not None:
                self._print(f"  seed {seed.seed} diverged at step {seed.diverged_at}")
