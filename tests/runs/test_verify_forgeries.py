"""Every forgery that an audit tried and that can be computed is refused.

Each edits a sound record as somebody would who knows the code: every digest is mended, and what
follows from the edit is changed with it. See also test_verify_contradictions and test_retraining.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from forging import (
    Content,
    Forgery,
    as_solver,
    edit,
    edit_command,
    edit_main,
    edit_spec,
    edit_training,
    find,
    problem_of,
    proved,
    reseal,
    seeds_listed,
    solver,
    states_of,
    values_of,
    with_values,
    with_weights,
)
from safetensors import safe_open
from safetensors.torch import save

from iclbench import RecordStore, RunSpec, verify
from iclbench.runs.comparison import Check
from iclbench.runs.objects import Objects
from iclbench.runs.store import read_record


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


def as_checkpoint(folder: Path) -> Path:
    """A construction that the training is said to begin with, as if it were a file."""

    def change(content: Content) -> None:
        content["spec"].update(init="gd-causal", freeze=["*"], checkpoint_digest="0" * 64)
        request = RunSpec.from_command(content["command"])
        began = {"init": "gd-causal", "freeze": ("*",)}
        content["command"] = request.model_copy(update=began).command()

    return reseal(find(folder), change)


def repeated_values(folder: Path) -> Path:
    path = find(folder)
    values = {name: np.concatenate([v] * 3, axis=1) for name, v in values_of(path).items()}
    return with_values(path, values)


def as_constructed(content: Content) -> None:
    as_solver(content)
    content["spec"].update(origin="constructed", weights="gd-causal")
    content["command"] = content["command"].split(" --recipe")[0] + " --weights gd-causal"


#: Name → the forgery, and a fact that then does not hold.
REFUSED: dict[str, tuple[Forgery, str]] = {
    "ranking.better": (edit(lambda c: c["ranking"].update(better="higher")), "ranking"),
    "ranking.statistic": (edit(lambda c: c["ranking"].update(statistic="mean")), "ranking"),
    "chance": (edit(lambda c: c.update(chance=True)), "chance"),
    "title": (edit_main(title="least-squares: on photographs"), "evaluation title"),
    "the command of another run": (edit_command(" --recipe smoke", ""), "spec recipe"),
    "evaluation.task_args": (
        edit_main(task_args={"dim": 20, "examples": 40}), "evaluation task_args",
    ),
    "more values than prompts": (repeated_values, "evaluation prompts"),
    "evaluation.seed": (edit_main(seed=7), "evaluation seed"),
    "evaluation.digest": (edit_main(digest="0" * 64), "evaluation digest"),
    "evaluation.shift": (edit_main(shift="harder"), "evaluation shift"),
    "another evaluation": (
        edit(lambda c: c["evaluations"].update(better=c["evaluations"]["main"])), "shifts",
    ),
    "training.steps": (edit_training(steps=1), "training steps"),
    # A list of the points of such a curve would take the memory.
    "training.steps without an end": (edit_training(steps=2**62), "training steps"),
    "the recipe's steps": (
        edit(lambda c: c["spec"]["recipe_args"].update(steps=10)), "spec recipe_args",
    ),
    "the recipe's name": (edit_spec(recipe="quick"), "spec recipe"),
    "no training": (edit(lambda c: c.update(training=None)), "training"),
    "one seed's weights under both": (seed_twice, "seeds with the weights of another"),
    "one seed's weights under both, nearly": (
        seed_nearly_twice, "seeds with the weights of another",
    ),
    "a whole number with a point": (other_number(1.0), "spec model_args"),
    "a whole number as a truth value": (other_number(True), "spec model_args"),
    "a proof of the future": (proved(created="2999-01-01T00:00:00+00:00"), "proof created"),
    "a reason for what no record lacks": (
        edit(lambda c: c.update(missing={"tuning": "lost"})), "missing",
    ),
    "repeated seeds": (seeds_listed(0, 0), "seeds"),
    "invented seeds": (seeds_listed(0, 7), "seeds"),
    "seeds without numbers": (seeds_listed(None, None), "seeds"),
    "trained as solver": (edit(as_solver), "spec origin"),
    "trained as constructed": (edit(as_constructed), "seeds"),
    "trained as loaded": (edit_spec(origin="loaded"), "spec origin"),
    "errors divided by three at the floor": (thirds_near_the_floor, "squared_error mean digits"),
    "permuted prompts": (permuted("baseconv"), "squared_error in order"),
    "permuted prompts at the floor": (
        permuted("least-squares-qr"), "squared_error of every prompt, values that agree",
    ),
    "one prompt's error": (one_prompt_better, "squared_error digits low"),
    "negative seconds of training": (edit_training(seconds=-1.0), "training seconds"),
    "tiny seconds of training": (
        edit_training(seconds=1e-9, steps_per_second=4e10), "training seconds",
    ),
    "seconds that contradict the rate": (edit_training(seconds=1e3), "training steps per second"),
    "negative seconds of evaluation": (edit_main(seconds=-1.0), "evaluation seconds"),
    "tiny seconds of evaluation": (edit_main(seconds=1e-9), "evaluation seconds"),
    "a date of the future": (
        edit(lambda c: c.update(created="2999-01-01T00:00:00+00:00")), "created",
    ),
    "a date before the schema": (
        edit(lambda c: c.update(created="2020-01-01T00:00:00+00:00")), "created",
    ),
    "a date that is none": (edit(lambda c: c.update(created="yesterday <b>")), "created"),
    "floor.name": (
        edit(lambda c: c["evaluations"]["main"]["floor"].update(name="QR")),
        "evaluation floor name",
    ),
    "floor.kind": (
        edit(lambda c: c["evaluations"]["main"]["floor"].update(kind="bayes")), "floor kind",
    ),
    "plugins left out": (edit(lambda c: c.update(plugins=c["plugins"][:1])), "plugins"),
    "another distribution": (
        edit(lambda c: c["plugins"][0].update(distribution="other")), "plugins",
    ),
    "unknown recipe arguments": (
        edit(lambda c: c["spec"]["recipe_args"].update(magic=1)), "spec recipe_args",
    ),
    "an invented init": (edit_spec(init="gd-causal"), "spec init"),
    "a construction as a checkpoint": (as_checkpoint, "spec checkpoint_digest"),
    "an invented init in the command": (
        edit_command("--recipe", "--init gd-causal --recipe"), "spec init",
    ),
    "an invented freeze": (edit_spec(freeze=["*"]), "spec freeze"),
    "an invented checkpoint": (edit_spec(checkpoint_digest="0" * 64), "spec checkpoint_digest"),
    "an invented data digest": (edit_spec(data_digest="0" * 64), "spec data_digest"),
    "parameters": (edit(lambda c: c.update(parameters=1)), "parameters"),
    "another state": (edit(lambda c: c.update(state_sizes=[1])), "state sizes"),
    "operations": (
        edit(lambda c: c.update(operations={"forward": 1.0, "training": 1.0})), "operations",
    ),
    "a track": (edit(lambda c: c.update(track="10m")), "track"),
    "a tuning": (
        edit(lambda c: c.update(tuning={"sha256": "0" * 64, "document": {}})), "tuning digest",
    ),
    "a divergence after the end": (
        edit(lambda c: c["seeds"][0].update(diverged_at=99)), "diverged at",
    ),
    "the points of the training curve": (edit_training(curve_steps=[7]), "training curve steps"),
    "lost losses without a divergence": (
        edit_training(curve=[[None, 0.1]]), "losses that are not finite without a divergence",
    ),
    "a grader": (edit(lambda c: c.update(grader={"name": "pmi"})), "grader"),
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
    forgery, fact = REFUSED[name]
    assert fact in {check.name for check in verify(forgery(records)) if not check.holds}


def test_an_evaluation_on_other_prompts_than_its_spec_says_is_refused(records):
    path = edit_main(prompts=2048)(records)
    assert "as many prompts as its spec says" in problem_of(path, verify)


def test_values_of_prompts_that_were_never_drawn_are_refused(records):
    """A file of 2 kB may hold a billion zeros."""

    def claim(content: Content) -> None:
        main = content["evaluations"]["main"]
        for reference in main["values"].values():
            reference["shape"][1] = 101 * main["prompts"]

    assert "are not those of" in problem_of(edit(claim)(records), verify)


def test_weights_under_two_names_are_refused(records):
    """Whoever reads the file by the names of the card would take the others."""
    path = find(records)
    file = Objects.beside(path).path(read_record(path).weights_file)
    with safe_open(file, framework="pt") as saved:
        metadata = saved.metadata()
        tensors = {name: saved.get_tensor(name) for name in saved.keys()}  # noqa: SIM118
    doubled = {f"0{name}": tensor for name, tensor in tensors.items()}
    doubled |= {name: tensor + 1 for name, tensor in tensors.items()}
    weights = Objects.beside(path).write(save(doubled, metadata), "safetensors")
    path = reseal(path, lambda c: c.update(weights=weights.model_dump(mode="json")))
    assert "names a tensor 00/" in problem_of(path, verify)


def test_control_characters_of_a_record_do_not_reach_the_terminal():
    check = Check("name", "\x9b31m\u202e", "other", False)
    assert check.difference.isprintable()


def test_all_sound_records_hold(sound):
    for path in RecordStore(sound).paths():
        assert [check for check in verify(path) if not check.holds] == []
