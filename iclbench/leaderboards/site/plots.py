"""The figures of the site as plain data; `svg` draws what readers see first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...api.record import Record
from ...api.statistics import Curve, finite
from ...console import capitalized
from ..board import Board
from ..curves import COST_TITLES, curve_statistic, drawn_curve, median_curve, seed_scores
from ..descriptions import Description, Descriptions
from ..floor import floor_label
from ..formats import digits_of
from ..grouping import grouped
from ..representative import is_one_training, representing
from ..row import PROFILE, Row
from .hues import COLORS, hues_of, style
from .magnitudes import RATIO_OF_CURVES, extent, is_error, spans_magnitudes
from .plot_notes import INTERVALS, MOST_BANDS, SEEDS, is_zero, note_of
from .settings import OPEN_BUDGET
from .short_names import shortened

#: The most lines of a plot that chooses among records.
MOST_LINES = 20
#: Lines whose names have room at their ends.
MOST_NAMES = 22
#: The heights that a plot's lines can end at and have their names beside them.
PLACES = 25
#: The characters of a vertical axis's name that fit beside it; a longer one is above the plot.
LONGEST_Y = 38
#: The digits at which each dtype's precision profile ends.
PROFILE_ENDS = {"float32": 8, "float64": 16}
#: The dashes of lines of reference, by turns.
REFERENCE_DASHES = ("dotted", "sparse")

Plot = dict[str, Any]


def plot(
    title: str,
    x: str,
    y: str,
    lines: Sequence[Plot],
    *,
    log: bool,
    log_x: bool = False,
    spread: str = INTERVALS,
    most: int | None = None,
) -> Plot:
    """A figure of lines {x, y, name[, low, high, band, reference, hue, page]} with titled axes.

    A line without a point on the axes is left out. Colors and dashes go by `hue`, or else by order;
    an axis of integers alone has no other ticks. A `wide` plot has names in it: beside points, and
    at the ends of more lines than there are colors if these lie apart. Others have a legend.
    `spread` says what lies between low and high. Beside references, the first `most` lines are
    drawn, and the note counts the others.
    """
    zeros = [line["name"] for line in lines if log and is_zero(line)]
    lines = [line for line in lines if has_point(line, log, log_x)]
    measured = [line for line in lines if not line.get("reference")]
    left_out = measured[most:] if most is not None else []
    if left_out:
        measured = measured[:most]
        lines = [*measured, *(line for line in lines if line.get("reference"))]
    are_points = bool(measured) and all(len(line["x"]) == 1 for line in measured)
    crowded = len({line.get("hue", i) for i, line in enumerate(measured)}) > COLORS
    named = are_points or (crowded and _end_apart(measured, log))
    labels = shortened([line["name"] for line in lines])
    return {
        "title": title,
        "x": {"title": x, "log": log_x, "integers": _are_integers(lines, "x")},
        "y": {
            "title": y,
            "log": log,
            "integers": _are_integers(lines, "y"),
            "above": len(y) > LONGEST_Y,
        },
        "wide": named and len(lines) <= MOST_NAMES and len(set(labels)) == len(labels),
        "are_points": are_points,
        "has_many_bands": sum(bool(line.get("band")) for line in lines) > MOST_BANDS,
        "note": note_of(lines, spread, zeros, len(left_out)),
        "lines": [
            line | {"label": label} | look
            for line, label, look in zip(lines, labels, _looks(lines), strict=True)
        ],
    }


def has_point(line: Plot, log: bool, log_x: bool) -> bool:
    """Whether any point of a line is on axes that are logarithmic or not."""
    return any(
        extent([x], log_x) and extent([y], log) for x, y in zip(line["x"], line["y"], strict=True)
    )


def _end_apart(lines: Sequence[Plot], log: bool) -> bool:
    """Whether most lines end at heights of their own on the axis."""
    shown = [[v for v in line["y"] if extent([v], log)] for line in lines]
    ends = np.array([values[-1] for values in shown if values])
    heights = np.log10(ends) if log else ends / (np.abs(ends).max(initial=0.0) or 1.0)
    size = np.ptp(heights) if len(heights) else 0.0
    return len(set(np.round(PLACES * heights / (size or 1.0)))) > len(lines) / 2


def _looks(lines: Sequence[Plot]) -> Iterator[Plot]:
    """The color and the dashes of each line."""
    references = 0
    for index, line in enumerate(lines):
        if line.get("reference"):
            yield {"color": 0, "dash": REFERENCE_DASHES[references % len(REFERENCE_DASHES)]}
            references += 1
        else:
            yield style(line.get("hue", index))


def _are_integers(lines: Sequence[Plot], axis: str) -> bool:
    return all(v is None or float(v).is_integer() for line in lines for v in line[axis])


def best_of_models(rows: Iterable[Row]) -> list[Row]:
    """The first representative row of each model with weights of one origin.

    A board has its trained rows first, by track, and the rows of a track best first.
    """
    by_model = grouped(representing(rows), lambda row: (row.origin, row.record.spec.model))
    return [first for first, *_ in by_model.values()]


def drawn_rows(rows: Iterable[Row]) -> list[Row]:
    """As `best_of_models`; where not all can be drawn, the best of each origin has a place."""
    best = best_of_models(rows)
    if len(best) <= MOST_LINES:
        return best
    others = [row for row in best if not row.is_trained]
    references = [members[0] for members in grouped(others, lambda row: row.origin).values()]
    trained = [row for row in best if row.is_trained][: MOST_LINES - len(references)]
    first = [*trained, *references]
    chosen = set(map(id, first))
    return [*first, *(row for row in best if id(row) not in chosen)]


def name_of(row: Row, about: Descriptions) -> str:
    """The row's label without the track, with the title of its model for the model's name."""
    model = row.record.spec.model
    return row.label_in_track.replace(model, about.model(model).title, 1)


def names_of(rows: Sequence[Row], about: Descriptions) -> list[str]:
    """The titles of the rows' models, with what tells them apart; one seed is told.

    That is the track and the origin where rows differ in them, and settings for equal names.
    """
    has_origins = len({row.origin for row in rows}) > 1
    has_tracks = len({row.track for row in rows if row.is_trained}) > 1
    ends = []
    for row in rows:
        origin = f" ({row.origin})" if has_origins and not row.is_trained else ""
        track = f", {row.track or OPEN_BUDGET}" if has_tracks and row.is_trained else ""
        one_seed = ", one seed" * is_one_training(row.record)
        ends.append(f"{track}{origin}{one_seed}")
    models = [row.record.spec.model for row in rows]
    counts = Counter(zip(models, ends, strict=True))
    return [
        (name_of(row, about) if counts[model, end] > 1 else about.model(model).title) + end
        for row, model, end in zip(rows, models, ends, strict=True)
    ]


def lines_of(rows: Sequence[Row], lines: Sequence[Plot], about: Descriptions) -> list[Plot]:
    """The rows' lines with their names, and the hues of their models."""
    hues = hues_of([row.record.spec.model for row in rows], about)
    named = zip(names_of(rows, about), hues, lines, strict=True)
    return [line | {"name": name, "hue": hue} for name, hue, line in named]


def profiles(board: Board, about: Descriptions) -> Plot | None:
    """The precision profile of each model's best row; None if digits do not rank."""
    rows = drawn_rows(row for row in board.rows if row.profile is not None)
    end = PROFILE_ENDS.get(board.dtype, PROFILE[-1])
    profiles = [
        {"x": list(PROFILE)[: end + 1], "y": list(row.profile or ())[: end + 1]} for row in rows
    ]
    lines = lines_of(rows, profiles, about)
    if not lines:
        return None
    return plot(f"Prompts solved to k digits, {board.dtype}", "digits k of the error",
                "fraction of prompts", lines, log=False, most=MOST_LINES)  # fmt: skip


def board_curves(board: Board, about: Descriptions) -> list[Plot]:
    """The curves of each model's best row, one plot per metric with a second axis."""
    rows, described = drawn_rows(board.rows), about.task(board.task)
    names = sorted({name for row in rows for name in row.record.curves})
    plots = []
    for name in names:
        with_curve = [row for row in rows if name in row.record.curves]
        if all(len(row.record.curves[name].values) < 2 for row in with_curve):
            continue
        first = with_curve[0].record
        statistic = curve_statistic(name, first)
        curves = [curve_line(row.record.curves[name], statistic) for row in with_curve]
        lines = lines_of(with_curve, curves, about)
        floor = first.main.floor.curves.get(name)
        lines += [_reference(first, floor, statistic)] if floor else []
        words, axis = described.metric(name), described.axis(first.curves[name].axis)
        title = f"{_along(words, axis)}, {board.dtype}"
        log = spans_lines(lines[:MOST_LINES])
        plots.append(plot(title, axis, f"{statistic} {words}", lines, log=log,
                          most=MOST_LINES))  # fmt: skip
    return plots


def validation_curves(board: Board, about: Descriptions) -> list[Plot]:
    """What was validated while each model's best row was trained, against operations and time."""
    rows = [row for row in best_of_models(board.rows) if drawn_curve(row.record)]
    metric = about.metric_of(board)
    score = digits_of(metric) if board.has_digits else metric
    # Digits are logarithms already.
    may_be_log = not board.has_digits and is_error(board.first)
    plots = []
    for cost in ("operations", "seconds"):
        drawn = [(row, validation_line(row.record, cost)) for row in rows]
        known = [(row, line) for row, line in drawn if None not in line["x"]]
        lines = lines_of([row for row, _ in known], [line for _, line in known], about)
        if lines:
            words = "training compute" if cost == "operations" else "training time"
            title = f"{capitalized(score)} against {words}, {board.dtype}"
            y = f"mean {score} on validation"
            log_x = any(v > 0 for line in lines for v in line["x"])
            log = may_be_log and spans_lines(lines[:MOST_LINES])
            plots.append(plot(title, COST_TITLES[cost], y, lines, log=log, log_x=log_x,
                              spread=SEEDS, most=MOST_LINES))  # fmt: skip
    return plots


def validation_line(record: Record, cost: str) -> Plot:
    """What was validated while a record was trained: the median over seeds, and their range."""
    curve = drawn_curve(record)
    if curve is None:
        return {"x": [], "y": []}
    line: Plot = {"x": getattr(curve, cost), "y": median_curve(curve)}
    if len(record.seeds) < 2:
        return line
    scores = seed_scores(curve)
    low, high = ([finite(v) for v in ends(scores, axis=0)] for ends in (np.min, np.max))
    return line | {"low": low, "high": high, "band": True}


def record_curves(record: Record, about: Description) -> list[Plot]:
    """A record's curves with the interval of their mean, and its training curve."""
    plots = []
    for name, curve in record.curves.items():
        if len(curve.values) < 2:
            continue
        statistic = curve_statistic(name, record)
        shown = ["median", "mean"] if statistic == "median" else ["mean"]
        lines: list[Plot] = [{"name": name} | curve_line(curve, name) for name in shown]
        floor = record.main.floor.curves.get(name)
        lines += [_reference(record, floor, statistic)] if floor else []
        words, axis = about.metric(name), about.axis(curve.axis)
        title = _along(words, axis)
        plots.append(plot(title, axis, words, lines, log=spans_lines(lines)))
    training = record.training
    if training is not None and training.curve:
        lines = [
            {"name": f"seed {seed.seed}", "x": training.curve_steps, "y": list(losses)}
            for seed, losses in zip(record.seeds, zip(*training.curve, strict=True), strict=True)
        ]
        log_x = sum(step > 0 for step in training.curve_steps) > 1
        plots.append(plot("Training loss", "training step", "training loss", lines,
                          log=spans_lines(lines), log_x=log_x, most=MOST_LINES))  # fmt: skip
    return plots


def _along(words: str, axis: str) -> str:
    """The title of a curve; a metric may say by itself what it runs along."""
    return capitalized(words if words.endswith(f" by {axis}") else f"{words} by {axis}")


def curve_line(curve: Curve, statistic: str) -> Plot:
    """A metric along its second axis; a mean has its bounds."""
    line: Plot = {"x": curve.values, "y": getattr(curve, statistic)}
    return line | ({"low": curve.low, "high": curve.high} if statistic == "mean" else {})


def _reference(record: Record, floor: Curve, statistic: str) -> Plot:
    """The floor's line, without an interval."""
    y = getattr(floor, statistic)
    return {"name": floor_label(record), "x": floor.values, "y": y, "reference": True}


def spans_lines(lines: Sequence[Plot]) -> bool:
    """Whether curves need a logarithmic axis, which leaves out zeros."""
    return spans_magnitudes((v for line in lines for v in line["y"] if v != 0), RATIO_OF_CURVES)
