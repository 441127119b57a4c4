"""Forged records: edited as somebody would who knows the code, with every digest mended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from iclbench import RecordStore, UsageError
from iclbench.api.spec import digest_of, spec_id
from iclbench.runs.comparison import Check
from iclbench.runs.objects import Objects
from iclbench.runs.statistics import summarize_run
from iclbench.runs.store import read_record, read_values
from iclbench.training.checkpoints import load_weights, weights_bytes

#: A record as JSON.
Content = dict[str, Any]
#: Forges a record in a folder and returns its path.
Forgery = Callable[[Path], Path]


def reseal(path: Path, change: Callable[[Content], object], *, rename: bool = True) -> Path:
    """Edit the record, mend its id and digest, and name the file after them; returns its path."""
    content = json.loads(path.read_text("utf-8"))
    change(content)
    content["id"] = spec_id(content["spec"])
    content["digest"] = digest_of({k: v for k, v in content.items() if k != "digest"})
    path.unlink()
    name = f"{content['spec']['model']}-{content['id']}.json" if rename else path.name
    target = path.with_name(name)
    target.write_text(json.dumps(content), "utf-8")
    return target


def with_values(
    path: Path,
    values: Mapping[str, np.ndarray],
    floor_values: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Give the record other values of these metrics, with the statistics that follow from them."""
    record, objects = read_record(path), Objects.beside(path)
    floor = record.main.floor
    values = {**read_values(path, record.main.values), **values}
    floor_values = {**read_values(path, floor.values), **(floor_values or {})}
    kinds = {name: s.digits.error for name, s in record.metrics.items() if s.digits}
    kinds |= {"accuracy": "fraction"}
    summary = summarize_run(values, floor_values, {}, kinds)
    dumped = {
        "metrics": {name: s.model_dump(mode="json") for name, s in summary.metrics.items()},
        "seeds": [
            {name: s.model_dump(mode="json") for name, s in metrics.items()}
            for metrics in summary.seeds
        ],
        "values": {
            name: reference.model_dump(mode="json")
            for name, reference in objects.write_arrays(values).items()
        },
    }
    floor_dumped = {
        "metrics": {name: s.model_dump(mode="json") for name, s in summary.floor.items()},
        "values": {
            name: reference.model_dump(mode="json")
            for name, reference in objects.write_arrays(floor_values).items()
        },
    }

    def change(content: Content) -> None:
        content["evaluations"]["main"].update(dumped)
        content["evaluations"]["main"]["floor"].update(floor_dumped)

    return reseal(path, change)


def find(folder: Path, model: str = "baseconv", origin: str = "trained", seeds: int = 2,
         steps: int | None = 20) -> Path:  # fmt: skip
    """The path of a sound record."""
    for path in RecordStore(folder).paths():
        spec = read_record(path).spec
        facts = (spec.model, spec.origin, len(spec.seeds), spec.recipe_args.get("steps"))
        if facts == (model, origin, seeds, steps):
            return path
    raise AssertionError(f"there is no record of {model}")


def solver(folder: Path, model: str) -> Path:
    return find(folder, model, "solver", 0, None)


def edit(change: Callable[[Content], object]) -> Forgery:
    """An edit of the trained record."""
    return lambda folder: reseal(find(folder), change)


def edit_main(**fields: object) -> Forgery:
    return edit(lambda c: c["evaluations"]["main"].update(fields))


def edit_spec(**fields: object) -> Forgery:
    return edit(lambda c: c["spec"].update(fields))


def edit_training(**fields: object) -> Forgery:
    return edit(lambda c: c["training"].update(fields))


def edit_command(old: str, new: str) -> Forgery:
    return edit(lambda c: c.update(command=c["command"].replace(old, new)))


def proved(**fields: object) -> Forgery:
    """A proof that its author wrote."""

    def change(content: Content) -> None:
        proof = {"kind": "evaluated", "created": content["created"],
                 "environment": content["environment"], "plugins": content["plugins"]}  # fmt: skip
        content["proof"] = {**proof, **fields}

    return edit(change)


def seeds_listed(*seeds: int | None) -> Forgery:
    def change(content: Content) -> None:
        content["seeds"] = [{"seed": seed, "diverged_at": None} for seed in seeds]
        main = content["evaluations"]["main"]
        main["seeds"] = [main["seeds"][0] for _ in seeds]

    return edit(change)


def with_weights(path: Path, states: dict) -> Path:
    """Give the record other weights."""
    spec = read_record(path).spec
    weights = Objects.beside(path).write(
        weights_bytes(states, spec.model, spec.model_args), "safetensors"
    )
    return reseal(path, lambda c: c.update(weights=weights.model_dump(mode="json")))


def states_of(path: Path) -> dict:
    return load_weights(Objects.beside(path).path(read_record(path).weights_file)).states


def values_of(path: Path) -> dict:
    return read_values(path, read_record(path).main.values)


def with_answers_of(path: Path, other: Path) -> Path:
    """Give the record another's answers to the first prompts."""
    answers = read_record(other).main.answers
    return reseal(path, lambda c: c["evaluations"]["main"].update(answers=answers))


def as_solver(content: Content) -> None:
    content["spec"].update(origin="solver", recipe="", recipe_args={}, seeds=[])
    content.update(training=None, weights=None)


def problem_of(path: Path, check: Callable[[Path], list[Check]]) -> str | None:
    """What is wrong with the record, in one line that names it; None if all facts hold."""
    try:
        differing = [fact.difference for fact in check(path) if not fact.holds]
    except UsageError as error:
        problem = str(error)
        assert str(path) in problem
        assert "\n" not in problem
        return problem
    return differing[0] if differing else None
