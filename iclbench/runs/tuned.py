"""Using a tuning: reading its file, applying what it chose to a plan, and checking a record's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from ..api.config import parse_config
from ..api.errors import RecordError, UsageError
from ..api.record import Record, Tuning
from ..api.spec import ResolvedSpec, digest_of
from ..api.tuning import (
    TuningDocument,
    sealed_tuning,
    start_of,
    tuning_bytes,
    tuning_evaluation_seed,
    tuning_seeds,
)
from ..console import counted
from ..files import read_json, write_atomically
from .arguments import GROUPS, Group, arguments_of, given_arguments, in_normal_form
from .comparison import Check, of_the_past, same
from .plan import Plan, resolve

#: The folder of tunings, beside the folders of records.
TUNINGS_FOLDER = "tunings"
#: The most bytes of a tuning's file.
MOST_BYTES = 2**24
#: What a tuning and the run that uses it have in common.
_SHARED = ("model", "task", "task_version", "task_args", "dtype", "recipe", "start")


def tuning_path(tuning: Tuning) -> PurePosixPath:
    """The path of a tuning's file below the folder that holds the records' folder."""
    return PurePosixPath(TUNINGS_FOLDER, f"{tuning.sha256[:16]}.json")


def write_tuning(folder: Path, document: TuningDocument) -> Path:
    """Write a tuning to `folder`/tunings, named by its content."""
    tuning = sealed_tuning(document)
    path = folder / tuning_path(tuning)
    write_atomically(path, tuning_bytes(tuning))
    return path


def read_tuning(path: Path) -> TuningDocument:
    """The tuning in a file; raises RecordError for an edited or an invalid one."""
    try:
        content = read_json(path, MOST_BYTES)
        document = parse_config(TuningDocument, content, str(path))
    except RecordError:
        raise
    except UsageError as error:  # it names the path
        raise RecordError(f"not a tuning: {error}") from None
    except ValueError as error:
        raise RecordError(f"{path} is not a tuning: {error}") from None
    digest = digest_of(content)
    if path.stem != digest[:16]:
        raise RecordError(f"{path} was edited or renamed: its digest is {digest[:16]}")
    return document


def read_tunings(paths: list[Path]) -> list[TuningDocument]:
    """The tunings in files, folders of tunings, and output folders, which hold one.

    Raises UsageError for a folder without any.
    """
    documents = []
    for path in paths:
        inside = path / TUNINGS_FOLDER
        folder = inside if inside.is_dir() else path
        files = sorted(folder.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise UsageError(f"there are no tunings in {path}")
        documents += [read_tuning(file) for file in files]
    return documents


def tuned(plan: Plan, document: TuningDocument) -> Plan:
    """The plan with the arguments that a tuning chose.

    Raises UsageError for a tuning of something else, or arguments that contradict it.
    """
    for name in _SHARED:
        ours, theirs = _json(plan.spec)[name], _json(document)[name]
        if ours != theirs:
            raise UsageError(f"the tuning is of {name}={theirs}, and the run has {name}={ours}")
    if not _is_of_prompts(plan, document):
        raise UsageError(
            "the tuning was made for another evaluation seed than the run's, "
            f"{plan.spec.eval_seed}: tune again with it"
        )
    contradiction = _contradiction(plan, document)
    if contradiction is not None:
        raise UsageError(contradiction)
    request = plan.request
    changes: dict[str, Any] = {
        group: {**getattr(request, group), **_chosen(document, group)} for group in GROUPS
    }
    planned = resolve(request.model_copy(update=changes))
    return replace(planned, tuning=sealed_tuning(document))


def _is_of_prompts(plan: Plan, document: TuningDocument) -> bool:
    """Whether the tuning's prompts are those that belong to the run's, and are never the same."""
    return document.evaluation_seed == tuning_evaluation_seed(plan.spec.eval_seed)


def _chosen(document: TuningDocument, group: Group) -> dict[str, Any]:
    """The arguments of a run that uses the tuning: those that it was given, and its choice."""
    if group == "model_args":
        return {**document.base_model_args, **document.best.model_args}
    return {**document.base_recipe_args, **document.best.recipe_args}


def _contradiction(plan: Plan, document: TuningDocument) -> str | None:
    """The first argument that the run gives and the tuning has otherwise, or None."""
    for group in GROUPS:
        chosen = in_normal_form(plan, group, _chosen(document, group))
        for key, value in given_arguments(plan, group).items():
            if key in chosen and chosen[key] != value:
                return f"{group}: {key}={value}, but the tuning has {key}={chosen[key]}"
    return None


def agrees(plan: Plan, document: TuningDocument) -> bool:
    """Whether a tuning is for the run's prompts, with no other value of an argument of the run."""
    return _is_of_prompts(plan, document) and _contradiction(plan, document) is None


def imposed_arguments(plan: Plan, document: TuningDocument) -> dict[str, Any]:
    """The arguments that the tuning was given and the run is not; it gets them with the choice."""
    imposed: dict[str, Any] = {}
    for group in GROUPS:
        base = document.base_model_args if group == "model_args" else document.base_recipe_args
        given = given_arguments(plan, group)
        imposed |= {name: value for name, value in base.items() if name not in given}
    return imposed


def choose_tuning(plan: Plan, documents: list[TuningDocument]) -> TuningDocument | None:
    """The tuning for a plan: of its arguments first, of its budget, of most trials, the newest.

    If none fits, it is one that differs only in its prompts or in an argument of the run; `tuned`
    then says which. None if there is none.
    """
    fitting = [
        document
        for document in documents
        if all(_json(plan.spec)[name] == _json(document)[name] for name in _SHARED)
    ]
    return max(
        fitting,
        key=lambda document: (
            agrees(plan, document),
            not imposed_arguments(plan, document),
            document.budget == plan.spec.budget,
            len(document.trials),
            document.created,
        ),
        default=None,
    )


def tuned_by_files(plan: Plan, paths: list[Path]) -> Plan:
    """The plan with the tuning that fits it, of those in files and folders.

    Raises UsageError if there is none.
    """
    if plan.recipe is None:
        raise UsageError(f"{plan.spec.model}: nothing is trained, so that no tuning applies")
    documents = read_tunings(paths)
    document = choose_tuning(plan, documents)
    if document is None:
        raise UsageError(why_none_fits(plan, documents))
    return tuned(plan, document)


def why_none_fits(plan: Plan, documents: list[TuningDocument]) -> str:
    """Why no tuning is for a plan: what the nearest one of its model and task has otherwise."""
    ours, name = _flat(plan.spec), f"{plan.spec.model} on {plan.spec.task}"
    differing = [
        {key: theirs.get(key) for key in {**theirs, **ours} if ours.get(key) != theirs.get(key)}
        for theirs in map(_flat, documents)
    ]
    of_both = [facts for facts in differing if not facts.keys() & {"model", "task"}]
    if not of_both:
        return f"no tuning is of {name}"
    nearest = min(of_both, key=len)
    facts = [f"{key}={value}, not {ours.get(key)}" for key, value in nearest.items()]
    return f"the tuning of {name} is of {' and '.join(facts)}"


def _flat(content: ResolvedSpec | TuningDocument) -> dict[str, Any]:
    """What a tuning and its run have in common, with the task's arguments and the start by name."""
    shared = _json(content)
    random = {"init": "random weights", "weights_args": {}, "freeze": [], "perturb": 0.0}
    return {**shared.pop("task_args"), **random, **shared.pop("start"), **shared}


def _json(content: ResolvedSpec | TuningDocument) -> dict[str, Any]:
    start = start_of(content) if isinstance(content, ResolvedSpec) else content.start
    return {**content.model_dump(mode="json", include=set(_SHARED)), "start": start}


def compare_tuning(record: Record, plan: Plan) -> Iterator[Check]:
    """A check for every fact about the tuning that can be computed; its trials are claimed.

    `plan` is that of the record's command.
    """
    if record.tuning is None:
        return
    yield same("tuning digest", record.tuning.sha256, _digest(record.tuning))
    try:
        document = parse_config(TuningDocument, record.tuning.document, "tuning")
    except UsageError as error:
        yield Check("tuning", str(error), "a valid document", False)
        return
    spec = record.spec
    for name in _SHARED:
        yield same(f"tuning {name}", _json(document)[name], _json(spec)[name])
    for group in GROUPS:
        used = arguments_of(plan, group)
        for key, value in in_normal_form(plan, group, _chosen(document, group)).items():
            yield same(f"tuned {group} {key}", used.get(key), value)
    yield same("tuning seeds", document.seeds, tuning_seeds(len(document.seeds)))
    yield same("seeds also used in tuning", sorted({*document.seeds} & {*spec.seeds}), [])
    prompts = tuning_evaluation_seed(spec.eval_seed)
    yield same("tuning evaluation seed", document.evaluation_seed, prompts)
    yield same("tuning ranking", document.ranking, record.ranking)
    yield of_the_past("tuning created", document.created)


def _digest(tuning: Tuning) -> str | None:
    try:
        return digest_of(tuning.document)
    except ValueError:  # a number that is not finite
        return None


def trials_in_words(document: Mapping[str, Any]) -> str:
    """How many trials a tuning had, and how many of them failed or diverged."""
    trials = document.get("trials")
    known = [t for t in trials if isinstance(t, dict)] if isinstance(trials, list) else []
    lost = sum(trial.get("score") is None for trial in known)
    return counted(len(known), "trial") + (f", {lost} without a score" if lost else "")
