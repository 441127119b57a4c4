"""Curves drawn in the terminal, by plotext."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from ..api.record import Record
from .terminal import console, print_lines, terminal_width

#: The lines of a plot, its columns where no terminal says how many, and the most labels of an axis.
HEIGHT, WIDTH, MOST_TICKS = 16, 80, 6
#: The most seeds with a line each.
MOST_LINES = 5
#: A curve of a training with fewer points is not drawn.
LEAST_POINTS = 3
#: What draws the lines where no colour tells them apart.
MARKERS = "x+*#%@"

Values = Sequence[float | None]


class Plot(NamedTuple):
    """Lines over the same x by their labels; `log` where the y axis shows powers of ten."""

    title: str
    x_label: str
    x: Sequence[float]
    lines: Mapping[str, Values]
    log: bool


def plots_of(record: Record) -> Iterator[Plot]:
    """The plots of a record: its curves with their floors, validation, and the training loss.

    Of a training that has fewer than `LEAST_POINTS` points, there is nothing to see.
    """
    for name, curve in record.curves.items():
        lines = {"median": curve.median, "mean": curve.mean}
        floor = record.main.floor.curves.get(name)
        if floor is not None:
            lines["floor, median"] = floor.median
        is_error = record.metrics[name].digits is not None
        yield Plot(f"{name} by {curve.axis}", curve.axis, curve.values, lines, is_error)
    validation = record.validation_curve
    if validation is not None and len(validation.steps) >= LEAST_POINTS:
        title = f"validation: {validation.statistic} of {validation.metric} by step"
        steps = [float(step) for step in validation.steps]
        yield Plot(title, "step", steps, _by_seed(record, validation.mean), False)
    training = record.training
    if training is not None and len(training.curve) >= LEAST_POINTS:
        by_seed = [[point[i] for point in training.curve] for i in range(len(record.seeds))]
        steps = [float(step) for step in training.curve_steps]
        finite = [v for values in by_seed for v in values if v is not None]
        log = bool(finite) and min(finite) > 0
        yield Plot("training loss by step", "step", steps, _by_seed(record, by_seed), log)


def _by_seed(record: Record, values: Sequence[Values]) -> dict[str, Values]:
    pairs = zip(record.seeds, values, strict=True)
    return {f"seed {seed.seed}": line for seed, line in list(pairs)[:MOST_LINES]}


def print_plot(plot: Plot) -> None:
    """Print a plot as wide as the terminal; nothing where it has no finite point."""
    has_colors = console().color_system is not None
    text = drawn(plot, min(terminal_width() or WIDTH, 100), has_colors)
    if text:
        print_lines([Text.from_ansi(text, no_wrap=True)])


def drawn(plot: Plot, width: int, has_colors: bool = True) -> str:
    """The plot as text with the colours of a terminal; empty where it has no finite point."""
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(width, HEIGHT)
    lowest, highest = math.inf, -math.inf
    for number, (label, values) in enumerate(plot.lines.items()):
        points = [
            (x, math.log10(y) if plot.log else y)
            for x, y in zip(plot.x, values, strict=True)
            if y is not None and math.isfinite(y) and (y > 0 or not plot.log)
        ]
        if points:
            marker = "braille" if has_colors else MARKERS[number % len(MARKERS)]
            marker = "dot" if label.startswith("floor") else marker
            plotext.plot(*map(list, zip(*points, strict=True)), label=label, marker=marker)
            lowest = min(lowest, *(y for _, y in points))
            highest = max(highest, *(y for _, y in points))
    if lowest > highest:
        return ""
    plotext.title(plot.title)
    plotext.xlabel(plot.x_label)
    if plot.log:
        ticks = _decades(lowest, highest)
        plotext.ylim(min(lowest, ticks[0]), max(highest, ticks[-1]))
        plotext.yticks(ticks, [f"1e{tick}" for tick in ticks])
    return str(plotext.build()).rstrip("\n")


def _decades(lowest: float, highest: float) -> list[int]:
    """Powers of ten that enclose a range of logarithms, few enough to label."""
    first, last = math.floor(lowest), math.ceil(highest)
    if first == last:  # one power of ten, which a range of no height would hold
        first, last = first - 1, last + 1
    step = max(1, math.ceil((last - first) / (MOST_TICKS - 1)))
    ticks = list(range(first, last + 1, step))
    return ticks if ticks[-1] >= highest else [*ticks, ticks[-1] + step]
