"""The effect of hyperparameters: the score against any number of the spec."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...api.names import is_number
from ...api.ranking import Ranking
from ...api.record import Record
from ...api.spec import canonical_json
from ...sweeps.fields import ARGUMENTS, omitted_arguments
from ..board_names import differing_arguments
from ..bounds import bounds_of
from ..descriptions import Descriptions
from ..formats import digits_of, in_words
from .hues import hues_of
from .magnitudes import RATIO_OF_CURVES, spans_magnitudes
from .plots import MOST_LINES, Plot, plot

#: What the arguments of these groups are of; those of a model need no name.
_OF = {
    "weights_args": " of the construction",
    "recipe_args": " of the training",
    "task_args": " of the task",
}
#: Arguments of the evaluation have words of their own.
_OF_TASK = "task_args."
#: The part of the axis's length within which lines lie on each other.
SAME = 0.005
#: Fields of a spec that are no settings of a model: nothing is drawn against them.
_NOT_SETTINGS = frozenset({"seeds", "eval_seed", "eval_prompts"})


def series(records: Sequence[Record], about: Descriptions) -> list[Plot]:
    """One figure per number of the spec; each line varies only that number.

    Rows of different tracks, seeds or prompts are never on one line.
    """
    facts = [_facts(record) for record in records]
    fields: dict[str, set[Any]] = {}
    for fact in facts:
        for name, value in fact.items():
            if is_number(value) and name not in _NOT_SETTINGS:
                fields.setdefault(name, set()).add(value)
    plots = [
        _along(name, records, facts, about) for name in sorted(fields) if len(fields[name]) > 1
    ]
    return [plot for plot in plots if plot is not None]


def _along(
    name: str, records: Sequence[Record], facts: Sequence[dict[str, Any]], about: Descriptions
) -> Plot | None:
    groups: dict[tuple[Any, ...], list[tuple[float, Record, dict[str, Any]]]] = {}
    for record, fact in zip(records, facts, strict=True):
        value = fact.get(name)
        if is_number(value):
            key = tuple((k, v) for k, v in fact.items() if k != name)
            groups.setdefault(key, []).append((value, record, fact))
    lines = [rows for rows in groups.values() if len({value for value, _, _ in rows}) > 1]
    if not lines:
        return None
    first = lines[0][0][1]
    setting, settings = _settings([rows[0][1] for rows in lines], name, about)
    names = _names([rows[0][2] for rows in lines], name, about)
    named = [", ".join(filter(None, parts)) for parts in zip(names, settings, strict=True)]
    hues = hues_of([rows[0][1].spec.model for rows in lines], about)
    drawn: list[Plot] = [
        {"name": label, "hue": hue, "setting": of_task} | _line(rows)
        for label, hue, of_task, rows in zip(named, hues, settings, lines, strict=True)
    ]
    xs = {value for line in drawn for value in line["x"]}
    log_x = spans_magnitudes(xs, RATIO_OF_CURVES)
    group, _, argument = name.rpartition(".")
    short = in_words(argument) + _OF.get(group, "")
    title = f"{_score(first.ranking)} against {short}"
    return plot(
        f"{title}, {setting}" if setting else title, short, _score(first.ranking).lower(),
        _merged(sorted(drawn, key=lambda line: str(line["name"]))),
        log=False, log_x=log_x, most=MOST_LINES,
    )  # fmt: skip


def _settings(
    records: Sequence[Record], without: str, about: Descriptions
) -> tuple[str, list[str]]:
    """The arguments of the task in words: those that all records share, and each one's others."""
    described = about.task(records[0].spec.task)
    arguments = [
        {k: v for k, v in record.main.task_args.items() if f"task_args.{k}" != without}
        for record in records
    ]
    shared = {k: v for k, v in arguments[0].items() if all(k in a and a[k] == v for a in arguments)}
    others = [{k: v for k, v in a.items() if k not in shared} for a in arguments]
    return described.settings(shared), [described.settings(a) for a in others]


def _merged(lines: Sequence[Plot]) -> list[Plot]:
    """The lines, where those of one setting that lie on each other are one with all their names."""
    values = [v for line in lines for v in line["y"] if v is not None]
    near = SAME * (max(values, default=0.0) - min(values, default=0.0))
    merged: list[Plot] = []
    for line in lines:
        same = next((one for one in merged if _coincide(one, line, near)), None)
        if same is None:
            merged.append(dict(line))
        else:
            same["name"] += f"; {line['name']}"
    return [{k: v for k, v in line.items() if k != "setting"} for line in merged]


def _coincide(one: Plot, other: Plot, near: float) -> bool:
    return bool(one["x"] == other["x"] and one["setting"] == other["setting"]) and all(
        a == b if a is None or b is None else abs(a - b) <= near
        for a, b in zip(one["y"], other["y"], strict=True)
    )


def _score(ranking: Ranking) -> str:
    """What ranks, in words."""
    metric = in_words(ranking.metric)
    return f"Mean {digits_of(metric)}" if ranking.has_digits else f"Mean {metric}"


def _line(rows: Iterable[tuple[float, Record, dict[str, Any]]]) -> Plot:
    """The scores with their intervals."""
    ordered = sorted(rows, key=lambda row: row[0])
    records = [record for _, record, _ in ordered]
    bounds = [bounds_of(r.metrics[r.ranking.metric], r.ranking) for r in records]
    return {
        "x": [x for x, _, _ in ordered],
        "y": [r.score for r in records],
        "low": [one.low for one in bounds],
        "high": [one.high for one in bounds],
    }


def _shown(name: str, value: Any) -> str:
    """A setting of a line, as short as it can be understood."""
    if name == "eval_prompts":
        return f"{value:,} prompts"
    return str(value) if name in {"dtype", "track"} else f"{name.rpartition('.')[2]}={value}"


def _names(facts: list[dict[str, Any]], without: str, about: Descriptions) -> list[str]:
    """Each line's model, and the dtype and settings that tell it from the model's other lines."""
    names = []
    models = [fact["model"] for fact in facts]
    for model, differing in zip(models, differing_arguments(models, facts), strict=True):
        shown = [_shown(k, v)
                 for k, v in sorted(differing.items())
                 if v and k != without and not k.startswith(_OF_TASK)]  # fmt: skip
        names.append(", ".join([about.model(model).title, *shown]))
    return names


def _facts(record: Record) -> dict[str, Any]:
    """Everything in which runs can differ, as values that can be compared."""
    spec = record.spec
    facts: dict[str, Any] = {
        "model": spec.model,
        "dtype": spec.dtype,
        "weights": spec.weights or "",
        "init": spec.checkpoint_digest or spec.init or "",
        "recipe": spec.recipe,
        "perturb": spec.perturb,
        "freeze": ",".join(spec.freeze),
        "track": record.track or "",
        "budget": spec.budget or "",
        "seeds": ",".join(map(str, spec.seeds)),
        "task_version": str(spec.task_version),
        "eval_seed": spec.eval_seed,
        "eval_prompts": spec.eval_prompts,
        "grader": spec.grader or "",
    }
    for group in ARGUMENTS:
        # A construction's model arguments follow from those of the construction.
        if group == "model_args" and spec.weights_args:
            continue
        for key, value in {**omitted_arguments(spec, group), **getattr(spec, group)}.items():
            plain = isinstance(value, int | float | str | bool) or value is None
            facts[f"{group}.{key}"] = value if plain else canonical_json(value)
    return facts
