"""A figure's panels with names in words instead of those of the code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...api.record import MAIN, Record
from ...sweeps.fields import field_of
from ...sweeps.figure import CURVE, Figure
from ..arguments import in_label
from ..descriptions import Description, Descriptions
from ..floor import FLOOR_LABELS
from ..formats import digits_of, file_name, in_words
from ..wording import axis, setting
from .line import Line
from .panels import Panel, drawn, label_of

#: What the distribution that a model was trained on is called beside shifts of it.
AS_TRAINED = "as trained"

#: What comes before the metric in a title of digits.
DIGITS_OF = "digits of "

#: What weights of other records are called, by their digest.
Sources = Mapping[str, str]

#: The groups of a spec's arguments that belong to its model; others belong to its task.
_OF_MODEL = ("model_args", "weights_args")
#: Fields whose values need no name.
_SAY_THEMSELVES = frozenset({"dtype", "origin"})
#: What comes before the name of weights of an origin.
_START = {
    ("weights", "constructed"): "constructed: ",
    ("weights", "loaded"): "weights of ",
    ("init", "trained"): "from ",
}


def worded(
    rows: Sequence[Sequence[Panel]],
    figure: Figure,
    records: Sequence[Record],
    about: Descriptions,
) -> list[list[Panel]]:
    """The panels of these records, with models, tasks, arguments and metrics in words."""
    words = _Words(figure, records, about)
    return [[words.panel(panel) for panel in row] for row in rows]


def labels_in_words(
    fields: tuple[str, ...], records: Sequence[Record], about: Descriptions
) -> list[str]:
    """Each record's values of these fields, in words where these tell the records apart."""
    sources = _sources(records)
    words = _told_apart({label_of(fields, r): _label(fields, r, about, sources) for r in records})
    return [words.get(label, label) for label in (label_of(fields, r) for r in records)]


def _label(fields: Sequence[str], record: Record, about: Descriptions, sources: Sources) -> str:
    """A record's values of these fields in words, or its model if it has none of them."""
    if all(field_of(record, name) is None for name in fields):
        return about.model(record.spec.model).title if fields else ""
    return ", ".join(filter(None, (_value(name, record, about, sources) for name in fields)))


def _value(name: str, record: Record, about: Descriptions, sources: Sources) -> str:
    value = field_of(record, name)
    if value is None:
        return ""
    if name == "model":
        return about.model(value).title
    if name == "task":
        return about.task(value).title
    if name in {"weights", "init"}:
        start = _START.get((name, record.spec.origin), "")
        digest = record.spec.checkpoint_digest
        return start + (sources.get(digest or "") or file_name(value, digest))
    group, _, argument = name.partition(".")
    if not argument:
        return in_label(value) if name in _SAY_THEMSELVES else f"{in_words(name)} {in_label(value)}"
    if group in _OF_MODEL and isinstance(value, list | tuple):
        # Parts that are models themselves, such as the mixers of a hybrid.
        titles = [about.model(part).title if isinstance(part, str) else part for part in value]
        value = " + ".join(titles) if all(isinstance(t, str) for t in titles) and titles else value
    return setting(_owner(group, record, about).arguments, argument, value)


def _sources(records: Sequence[Record]) -> Sources:
    """What weights that some of these records wrote are called, by their digest.

    Trainings that would be called the same are not told apart: their weights keep their digests.
    """
    names = {
        r.weights_file.sha256: f"the {in_words(r.spec.recipe)} training in {r.spec.dtype}"
        for r in records
        if r.weights_file is not None and r.spec.recipe
    }
    read = {record.spec.checkpoint_digest for record in records}
    used = Counter(name for digest, name in names.items() if digest in read)
    return {digest: name for digest, name in names.items() if used[name] == 1}


def _owner(group: str, record: Record, about: Descriptions) -> Description:
    spec = record.spec
    return about.model(spec.model) if group in _OF_MODEL else about.task(spec.task)


def _told_apart(words: dict[str, str]) -> dict[str, str]:
    """What each label reads; labels that would read the same, or nothing, stay as they are."""
    times = Counter(words.values())
    return {label: text for label, text in words.items() if text and times[text] == 1}


def floor_name(records: Sequence[Record]) -> str:
    """What the records' floors are called, if they are of one kind."""
    floors = {r.main.floor.kind for r in records if r.main.floor.metrics}
    return FLOOR_LABELS.get(floors.pop(), "floor") if len(floors) == 1 else "floor"


def floor_names(
    figure: Figure, records: Sequence[Record], rows: Sequence[Sequence[Panel]], name: str
) -> dict[str, str]:
    """What the floor of each group of lines is called: `name`, with the dtype if they differ by it.

    A group of several dtypes has the name alone.
    """
    dtypes: dict[str, set[str]] = {}
    for record in drawn(figure, records):
        dtypes.setdefault(label_of(figure.lines, record), set()).add(record.spec.dtype)
    dtype_of = {group: next(iter(known)) for group, known in dtypes.items() if len(known) == 1}
    lines = [line for row in rows for panel in row for line in panel.lines]
    points: dict[str, set[tuple[Any, float | None]]] = {}
    for line in lines:
        if line.floor and line.group in dtype_of:
            pairs = zip(line.x, line.y, strict=True)
            points.setdefault(dtype_of[line.group], set()).update(pairs)
    first, *others = points.values() or [set()]
    if all(other == first for other in others):
        dtype_of = {}
    return {
        line.group: f"{name}, {dtype_of[line.group]}" if line.group in dtype_of else name
        for line in lines
    }


class _Words:
    """What a figure's lines, columns and values of the x axis are called."""

    def __init__(self, figure: Figure, records: Sequence[Record], about: Descriptions) -> None:
        self.records, self.about, self.x = records, about, str(figure.x)
        sources = _sources(records)
        self.lines, self.columns = (
            _told_apart({label_of(fields, r): _label(fields, r, about, sources) for r in records})
            for fields in (figure.lines, figure.panels)
        )
        self.columns[MAIN] = AS_TRAINED
        x = self.x
        has_names = "." in x or x in {"model", "task"}
        self.ticks = (
            _told_apart({str(field_of(r, x)): _value(x, r, about, sources) for r in records})
            if has_names
            else {}
        )

    def panel(self, panel: Panel) -> Panel:
        return replace(
            panel,
            column=self.columns.get(panel.column, panel.column),
            x_title=self._axis(panel.x_title),
            y_title=self._metric(panel.y_title),
            lines=tuple(map(self._line, panel.lines)),
        )

    def _line(self, line: Line) -> Line:
        name = self.lines.get(line.group, line.group) + line.name.removeprefix(line.group)
        return replace(line, name=name, x=[self._tick(x) for x in line.x])

    def _tick(self, x: Any) -> Any:
        is_category = isinstance(x, str | bool)
        return self.ticks.get(str(x), x) if is_category else x

    def _axis(self, title: str) -> str:
        """What an argument or a curve's axis is called, by the first record that has it."""
        if self.x == CURVE:
            return self.about.task(self.records[0].spec.task).axis(title)
        group, _, argument = self.x.partition(".")
        for record in self.records:
            if argument and field_of(record, self.x) is not None:
                return axis(_owner(group, record, self.about).arguments, argument)
        return in_words(title)

    def _metric(self, title: str) -> str:
        """A title that ends with a metric's name, with what the task calls it."""
        name = title.rpartition(" ")[2]
        task = next((r.spec.task for r in self.records if name in r.metrics), None)
        if task is None:
            return in_words(title)
        start, metric = title.removesuffix(name), self.about.task(task).metric(name)
        before, is_digits, _ = start.rpartition(DIGITS_OF)
        return before + digits_of(metric) if is_digits else start + metric
