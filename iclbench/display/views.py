"""Where progress is shown: a terminal, a notebook, or lines on standard error."""

from __future__ import annotations

import html
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ..console import counted, is_terminal, write_line

#: Shortest time between two plain lines about training.
PLAIN_SECONDS = 10.0
#: The same for jobs, each of which has a line when it ends.
JOB_SECONDS = 60.0
#: The most runs that are shown at once.
MOST_SHOWN = 8


def duration(seconds: float) -> str:
    """A time as a person says it: `under 1 s`, `40 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 1:
        return "under 1 s"
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


@dataclass
class State:
    """What is known of the run that is going on."""

    name: str
    number: int
    total: int
    phase: str
    step: int = 0
    steps: int | None = None
    #: How many more runs are trained together with the one that is named.
    more: int = 0
    loss: str = ""
    started: float = field(init=False)
    #: When the first and the last steps were reported, and how many: before them is set-up.
    first: tuple[float, int] | None = None
    last: tuple[float, int] | None = None

    def __post_init__(self) -> None:
        self.started = time.monotonic()

    def advance(self, step: int, steps: int, losses: list[float]) -> None:
        """Take up what a training step reports."""
        self.step, self.steps, self.phase = step, steps, "training"
        self.loss = _losses_in_words(losses)
        self.last = (time.monotonic(), step)
        self.first = self.first or self.last
        if step >= steps:
            self.phase = "evaluating"

    @property
    def left(self) -> str:
        """The time left of the training, once two points are known."""
        if self.first is None or self.last is None or self.steps is None:
            return ""
        (began, before), (now, done) = self.first, self.last
        if done <= before or self.phase != "training":
            return ""
        seconds = (self.steps - done) * (now - began) / (done - before)
        return f"{duration(max(seconds - (time.monotonic() - now), 0.0))} left"

    @property
    def title(self) -> str:
        """The run, and its place among all."""
        position = f"{self.number} of {self.total}" if self.total > 1 and self.number else ""
        more = f" and {self.more} more" if self.more else ""
        return ": ".join(filter(None, [position, f"{self.name}{more}"]))

    @property
    def details(self) -> str:
        """The phase with its steps, the loss, and the time left or taken so far."""
        at_step = self.phase == "training" and self.steps is not None
        steps = f" {self.step:,} of {self.steps:,} steps" if at_step else ""
        taken = duration(time.monotonic() - self.started)
        return " · ".join(filter(None, [f"{self.phase}{steps}", self.loss, self.left or taken]))


def _losses_in_words(losses: Sequence[float]) -> str:
    """The median of the seeds' finite losses, and how many seeds have none."""
    known = [loss for loss in losses if math.isfinite(loss)]
    lost = len(losses) - len(known)
    median = f"loss {statistics.median(known):.2e}" if known else ""
    diverged = f"{lost} of {counted(len(losses), 'seed')} diverged" if lost else ""
    return " · ".join(filter(None, [median, diverged]))


class View(Protocol):
    """Where progress is shown."""

    def show(self, states: Sequence[State]) -> None:
        """Show all that goes on."""

    def line(self, text: str) -> None:
        """Print a line that stays."""

    def close(self) -> None:
        """Remove what does not stay."""


class TerminalView:
    """Two lines per run at the bottom of the terminal, refreshed four times a second."""

    def __init__(self) -> None:
        self._states: Sequence[State] = ()
        self._spinner = Spinner("dots")
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=4,
            transient=True,
        )
        self._live.start()

    def _render(self) -> Any:
        shown = [self._lines(state) for state in self._states[:MOST_SHOWN]]
        hidden = len(self._states) - len(shown)
        return Group(*shown, *([Text(f"  and {hidden} more")] if hidden else []))

    def _lines(self, state: State) -> Group:
        line = Table.grid(padding=(0, 1))
        line.add_row(self._spinner, Text(state.title, style="bold", no_wrap=True))
        done = state.step if state.steps else None
        total = state.steps or None
        bar = ProgressBar(total=total, completed=done or 0, width=24, pulse=not state.step)
        below = Table.grid(padding=(0, 1))
        below.add_row(Text(" "), bar, Text(state.details, no_wrap=True, overflow="ellipsis"))
        return Group(line, below)

    def show(self, states: Sequence[State]) -> None:
        """Take up what goes on; the next refresh shows it."""
        self._states = states

    def line(self, text: str) -> None:
        """Print a line above the display."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Remove the display."""
        self._states = ()
        self._live.stop()


class NotebookView:
    """A bar in a notebook, redrawn when something is reported."""

    def __init__(self) -> None:
        from IPython.display import display

        self._handle: Any = display({"text/plain": ""}, raw=True, display_id=True)
        self._lines: list[str] = []
        self._states: Sequence[State] = ()

    def _draw(self) -> None:
        parts = [html.escape(line) for line in self._lines]
        texts = list(self._lines)
        for state in self._states:
            bar = f'<progress value="{state.step}" max="{state.steps or 1}"></progress>'
            parts.append(f"{html.escape(state.title)} {bar} {html.escape(state.details)}")
            texts.append(f"{state.title}: {state.details}")
        content = {"text/html": "<br>".join(parts), "text/plain": "\n".join(texts)}
        self._handle.update(content, raw=True)

    def show(self, states: Sequence[State]) -> None:
        """Redraw the bars."""
        self._states = states
        self._draw()

    def line(self, text: str) -> None:
        """Keep a line above the bar."""
        self._lines.append(text)
        self._draw()

    def close(self) -> None:
        """Leave the lines alone."""
        self._states = ()
        self._draw()


class PlainView:
    """Lines on standard error: when a run starts, every few seconds, and when it ends."""

    def __init__(self, seconds: float = PLAIN_SECONDS) -> None:
        self._seconds = seconds
        self._last = time.monotonic()

    def show(self, states: Sequence[State]) -> None:
        """Print the states, if the last line is long ago."""
        under_way = [state for state in states if state.step]
        if under_way and time.monotonic() - self._last >= self._seconds:
            self._last = time.monotonic()
            for state in under_way:
                self.line(f"{state.title}: {state.details}")

    def line(self, text: str) -> None:
        """Print a line."""
        write_line(text)

    def close(self) -> None:
        """Do nothing: lines stay."""


def in_notebook() -> bool:
    """Whether this Python runs a notebook, which shows HTML: of Jupyter, Colab or Databricks."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return False
    kind = type(shell)
    # The shells of the latter two have names of their own.
    return (
        kind.__name__ == "ZMQInteractiveShell"
        or "google.colab" in kind.__module__
        or "DATABRICKS_RUNTIME_VERSION" in os.environ
    )


def on_terminal() -> bool:
    """Whether standard error is a terminal that can redraw lines."""
    return is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a text on a terminal while the block runs: what is slow before there is progress."""
    if not on_terminal():
        yield
        return
    with Console(stderr=True).status(Text(text)):
        yield
