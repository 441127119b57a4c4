"""Labels: each row's model, with the settings that tell it from the model's other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api.record import Record
from ..api.spec import canonical_json
from .formats import file_name, in_label

Facts = dict[str, Any]

#: Shown wherever they are set: the number of prompts that a model was trained on, and what its
#: training started from.
NOTABLE = ("task_args.pool", "init")

#: A fact that a label leaves out: it is the absence of a setting.
UNSET = "none"

#: The groups of arguments that tell a model's rows from each other.
_GROUPS = ("model_args", "weights_args", "recipe_args")

#: A recipe's settings that repeat the arguments of model and task, or that change no result.
_DERIVED = ("recipe_args.model_args", "recipe_args.task_args", "recipe_args.chunk")


def labels_of(records: Sequence[Record]) -> list[str]:
    """One label per record of a board.

    Rows of different tracks differ in almost every setting, so the track alone tells them apart.
    """
    facts = [_facts(record) for record in records]
    by_model: dict[tuple[str, ...], list[Facts]] = {}
    by_formula: dict[tuple[str, ...], list[Facts]] = {}
    for record, known in zip(records, facts, strict=True):
        by_model.setdefault(_model(record), []).append(known)
        by_formula.setdefault(_formula(record), []).append(known)
    of_model = {model: _differing(group) for model, group in by_model.items()}
    of_formula = {formula: _differing(group) for formula, group in by_formula.items()}
    labels = []
    for record, known in zip(records, facts, strict=True):
        names = {n for n in of_model[_model(record)] if not n.startswith("model_args.")}
        names |= {n for n in of_formula[_formula(record)] if n.startswith("model_args.")}
        names |= {name for name in NOTABLE if known.get(name) is not None}
        names |= {f"model_args.{name}" for name in _given(record)}
        # Somebody chose seeds that are not the first ones.
        names |= {"seeds"} if record.spec.seeds != tuple(range(len(record.spec.seeds))) else set()
        # A fact that a record lacks, such as a solver's recipe, shows in the column of origins.
        shown = [
            f"{name.split('.')[-1]}={in_label(known[name])}"
            for name in sorted(names)
            if known.get(name, UNSET) != UNSET and known[name] is not None
        ]
        labels.append(" ".join([record.spec.model, *shown]))
    return _told_apart(_with_tracks(labels, records), records)


def _given(record: Record) -> list[str]:
    """The arguments of the model that a tuning was given and did not search.

    They may make the model another one than a paper's.
    """
    given = record.tuning.document.get("base_model_args") if record.tuning else None
    return list(given) if isinstance(given, dict) else []


def _with_tracks(labels: Sequence[str], records: Sequence[Record]) -> list[str]:
    """The labels, where equal ones of trained rows in several tracks are followed by their track.

    Rows with other weights are told apart by their origin.
    """
    tracks: dict[str, set[str]] = {}
    for label, record in zip(labels, records, strict=True):
        if record.spec.origin == "trained":
            tracks.setdefault(label, set()).add(record.track or "")
    return [
        f"{label} track={record.track}" if record.track and len(tracks[label]) > 1 else label
        for label, record in zip(labels, records, strict=True)
    ]


def _told_apart(labels: Sequence[str], records: Sequence[Record]) -> list[str]:
    """The labels, where equal ones are followed by the parts of arguments that differ."""
    parts = [_parts(record) for record in records]
    members: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        members.setdefault(label, []).append(i)
    differing = {label: sorted(_differing([parts[i] for i in group]))
                 for label, group in members.items()}  # fmt: skip
    return [
        " ".join([label, *(f"{name.rpartition('.')[2]}={in_label(parts[i][name])}"
                           for name in differing[label] if parts[i].get(name) is not None)])
        for i, label in enumerate(labels)
    ]  # fmt: skip


def grader_name(record: Record) -> str:
    """The grader and the model that it asked, or `none`."""
    grader = record.grader
    return " ".join([grader.name, grader.model or ""]).strip() if grader else UNSET


def _differing(facts: Sequence[Facts]) -> set[str]:
    """The names with different values among records that have them.

    A model's argument also differs if some records lack it: it was added after they were made.
    """
    values: dict[str, list[str]] = {}
    for known in facts:
        for name, value in known.items():
            values.setdefault(name, []).append(str(value))
    return {
        name
        for name, present in values.items()
        if len(set(present)) > 1 or (name.startswith("model_args.") and len(present) < len(facts))
    }


def _model(record: Record) -> tuple[str, ...]:
    """The model, in one track."""
    return record.spec.model, record.track or ""


def _formula(record: Record) -> tuple[str, ...]:
    """What determines the model's arguments: records that differ in it are not told apart by them.

    A construction's model arguments follow from those of the construction.
    """
    spec = record.spec
    args = canonical_json(spec.weights_args) if spec.origin == "constructed" else ""
    return *_model(record), spec.origin, str(spec.weights or ""), args


def _parts(record: Record) -> Facts:
    """The innermost values of arguments that have parts, such as those of an optimizer."""
    parts: Facts = {}
    for group in _GROUPS:
        waiting = [(f"{group}.{k}", v) for k, v in getattr(record.spec, group).items()]
        while waiting:
            name, value = waiting.pop()
            if isinstance(value, dict):
                waiting += [(f"{name}.{k}", v) for k, v in value.items()]
            elif name.count(".") > 1 and not name.startswith(_DERIVED):
                parts[name] = value
    return parts


def _facts(record: Record) -> Facts:
    spec = record.spec
    facts: Facts = {}
    for group in _GROUPS:
        arguments = getattr(spec, group).items()
        facts.update({f"{group}.{k}": v for k, v in arguments if not isinstance(v, dict)})
    if spec.origin == "trained":
        facts.update({"recipe": spec.recipe, "seeds": spec.seeds})
    if spec.origin in {"trained", "loaded"}:
        for name, value in spec.task_args.items():
            if name not in record.main.task_args:
                facts[f"task_args.{name}"] = value
    for name in ("weights", "init", "freeze", "perturb", "budget"):
        value = getattr(spec, name)
        facts[name] = file_name(value) if isinstance(value, str) else value or UNSET
    facts["grader"] = grader_name(record)
    for name in _DERIVED:
        facts.pop(name, None)
    if spec.budget is not None:
        # The length that the recipe's schedule is scaled from; the recipe's name tells it.
        facts.pop("recipe_args.schedule_steps", None)
    return facts
