"""Labels: each row's model, with the settings that tell it from the model's other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api.record import Record
from ..api.spec import canonical_json
from .arguments import in_label
from .board_names import differing_arguments, told_apart
from .formats import file_name

Facts = dict[str, Any]

#: Shown wherever they are set: the number of prompts that a model was trained on, and what its
#: training started from.
NOTABLE = ("task_args.pool", "init")

#: The groups of arguments that tell a model's rows from each other.
_GROUPS = ("model_args", "weights_args", "recipe_args")

#: How the names of a model's arguments begin. One that some records lack tells them apart: it was
#: added after they were made.
_MODEL = "model_args."

#: A recipe's settings that repeat the arguments of model and task, or that change no result.
_DERIVED = ("recipe_args.model_args", "recipe_args.task_args", "recipe_args.chunk")


def labels_of(records: Sequence[Record]) -> list[str]:
    """One label per record of a board, each another one.

    It names the settings in which a row differs from the same model's other rows of its track.
    Rows of different tracks differ in almost every setting, so the track alone tells them apart.
    """
    facts = [_facts(record) for record in records]
    settings = differing_arguments([_model(record) for record in records], facts, _MODEL)
    arguments = differing_arguments([_formula(record) for record in records], facts, _MODEL)
    labels = []
    for record, known, of_model, of_formula in zip(
        records, facts, settings, arguments, strict=True
    ):
        names = {name for name in of_model if not name.startswith(_MODEL)}
        names |= {name for name in of_formula if name.startswith(_MODEL)}
        names |= {name for name in NOTABLE if known.get(name) is not None}
        # Somebody chose seeds that are not the first ones.
        names |= {"seeds"} if record.spec.seeds != tuple(range(len(record.spec.seeds))) else set()
        # A fact that a record lacks, such as a solver's recipe, shows in the column of origins.
        shown = {name: known.get(name) for name in names}
        labels.append(" ".join([record.spec.model, *_in_label(shown)]))
    labels = _with_tracks(labels, records)
    # Equal labels are followed by the parts of arguments that differ.
    parts = differing_arguments(labels, [_parts(record) for record in records], _MODEL)
    labels = [
        " ".join([label, *_in_label(part)]) for label, part in zip(labels, parts, strict=True)
    ]
    # Weights of a construction or a file beside trained ones, and whatever is still alike.
    weights = [f"weights={known['weights']}" if known["weights"] else "" for known in facts]
    labels = told_apart(labels, weights, " ")
    return told_apart(labels, [record.id[:8] for record in records], " ")


def _in_label(facts: Facts) -> list[str]:
    """The facts that are known as `name=value`, without the groups that they are in."""
    known = sorted(item for item in facts.items() if item[1] is not None)
    return [f"{name.rpartition('.')[2]}={in_label(value)}" for name, value in known]


def _with_tracks(labels: Sequence[str], records: Sequence[Record]) -> list[str]:
    """The labels, where equal ones of trained rows in several tracks are followed by their track.

    Rows with other weights are told apart by their origin.
    """
    trained = {i: label for i, label in enumerate(labels) if records[i].spec.origin == "trained"}
    tracks = [f"track={track}" if (track := records[i].track) else "" for i in trained]
    named = dict(zip(trained, told_apart(list(trained.values()), tracks, " "), strict=True))
    return [named.get(i, label) for i, label in enumerate(labels)]


def grader_name(record: Record) -> str:
    """The grader and the model that it asked, or `none`."""
    grader = record.grader
    return " ".join([grader.name, grader.model or ""]).strip() if grader else "none"


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
        # As `--seeds` takes a single one: 7 would be seven seeds.
        seeds = f"[{spec.seeds[0]}]" if len(spec.seeds) == 1 else spec.seeds
        facts.update({"recipe": spec.recipe, "seeds": seeds})
    if spec.origin in {"trained", "loaded"}:
        for name, value in spec.task_args.items():
            if name not in record.main.task_args:
                facts[f"task_args.{name}"] = value
    for name in ("weights", "init"):
        file = getattr(spec, name)
        facts[name] = None if file is None else file_name(file, spec.checkpoint_digest)
    for name in ("freeze", "perturb", "budget"):
        facts[name] = getattr(spec, name) or None
    facts["grader"] = grader_name(record) if record.grader else None
    for name in _DERIVED:
        facts.pop(name, None)
    if spec.budget is not None:
        # The length that the recipe's schedule is scaled from; the recipe's name tells it.
        facts.pop("recipe_args.schedule_steps", None)
    return facts
