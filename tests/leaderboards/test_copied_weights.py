"""Weights are published once: a second row of them would claim another's training."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from forging import reseal, states_of, values_of, with_answers_of, with_values, with_weights

from iclbench import RecordError, RecordStore, RunSpec, run
from iclbench.leaderboards.copied_weights import require_own_training, require_own_weights
from iclbench.runs.store import read_record

TINY = {"task": "least-squares", "recipe": "smoke", "seeds": 2, "eval_prompts": 64,
        "task_args": {"dim": 2, "examples": 4}}  # fmt: skip


@pytest.fixture
def trained(tmp_path):
    """Two records of other recipes."""
    paths = []
    for name, rate in (("own", 1e-3), ("copy", 2e-3)):
        recipe_args = {"learning_rate": rate}
        run(model="baseconv", **TINY, recipe_args=recipe_args, out=tmp_path / name)
        paths += RecordStore(tmp_path / name).paths()
    return paths


@pytest.fixture
def copied(trained):
    """A trained record, and one of another recipe that has its weights, moved a little."""
    own, copy = trained
    states = {
        seed: {name: value * (1 + 1e-6) for name, value in state.items()}
        for seed, state in states_of(own).items()
    }
    copy = with_answers_of(with_values(with_weights(copy, states), values_of(own)), own)
    return own, copy


def test_weights_of_a_published_row_are_refused(cli, copied, tmp_path):
    own, copy = copied
    boards = tmp_path / "boards"
    assert cli("verify", copy).code == 0
    assert cli("submit", own, "--to", boards).code == 0
    outcome = cli("submit", copy, "--to", boards)
    assert outcome.code == 2
    assert "its answers are those of" in outcome.err
    assert len(list(RecordStore(boards / "records").paths())) == 1


def test_weights_of_a_row_that_is_submitted_beside_it_are_refused(cli, copied, tmp_path):
    outcome = cli("submit", *copied, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert f"its answers are those of {copied[0]}" in outcome.err


def test_weights_that_are_said_to_begin_with_a_file_are_refused_too(cli, copied, tmp_path):
    own, copy = copied

    def change(content):
        content["spec"].update(init="none", checkpoint_digest="0" * 64)
        request = RunSpec.from_command(content["command"])
        content["command"] = request.model_copy(update={"init": "none"}).command()

    copy = reseal(copy, change)
    assert cli("verify", copy).code == 0
    outcome = cli("submit", own, copy, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert f"its answers are those of {own}" in outcome.err


def test_the_same_weights_on_another_board_are_a_row(cli, tmp_path):
    for prompts in (64, 32):
        run(model="baseconv", **{**TINY, "eval_prompts": prompts}, out=tmp_path)
    outcome = cli("submit", tmp_path, "--to", tmp_path / "boards")
    assert outcome.code == 0, outcome.err
    assert len(list(RecordStore(tmp_path / "boards" / "records").paths())) == 2


def test_weights_of_another_model_are_refused(cli, tmp_path):
    """A hybrid of attention alone is a transformer, and has its tensors under the same names."""
    both = {"transformer": {}, "hybrid": {"mixers": ["attention"]}}
    for model, args in both.items():
        run(model=model, **TINY, model_args=args, out=tmp_path / model)
    own, copy = (next(iter(RecordStore(tmp_path / model).paths())) for model in both)
    copy = with_answers_of(with_values(with_weights(copy, states_of(own)), values_of(own)), own)
    scores = json.loads(own.read_text())["validation_curve"]
    del scores["seconds"]
    copy = reseal(copy, lambda c: c["validation_curve"].update(scores))
    assert cli("verify", copy).code == 0
    outcome = cli("submit", own, copy, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert f"its answers are those of {own}" in outcome.err


def test_a_new_row_does_not_lack_what_every_training_measures(cli, tmp_path):
    run(model="baseconv", **TINY, out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    path = reseal(path, lambda c: c.update(budget=None, missing={"budget": "lost"}))
    path = reseal(path, lambda c: c.update(validation_curve=None))
    assert cli("verify", path).code == 0
    outcome = cli("submit", path, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "it lacks its budget and validation curve, which every" in outcome.err


def test_trainings_that_end_near_each_other_are_rows_of_their_own(cli, tmp_path):
    """From the same initial weights, with rates that differ by a tenth."""
    shared = {**TINY, "task": "linear-system", "task_args": {"sizes": "2-3"}}
    for rate in (3e-3, 3.3e-3):
        run(model="linear-transformer", **shared, recipe_args={"learning_rate": rate}, out=tmp_path)
    outcome = cli("submit", tmp_path, "--to", tmp_path / "boards")
    assert outcome.code == 0, outcome.err
    assert len(list(RecordStore(tmp_path / "boards" / "records").paths())) == 2


def test_a_run_with_more_seeds_replaces_no_row(cli, tmp_path):
    for seeds in (2, 3):
        run(model="baseconv", **{**TINY, "seeds": seeds}, out=tmp_path / str(seeds))
    outcome = cli("submit", tmp_path / "2", tmp_path / "3", "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "with other seeds; rows are not replaced" in outcome.err


def test_one_file_of_weights_is_one_row_whatever_it_is_said_to_begin_with(tmp_path):
    task = {**TINY, "task": "linear-system", "task_args": {"sizes": "2-3"}}
    own = run(model="linear-transformer", **task, out=tmp_path)
    spec = own.spec.model_copy(update={"init": "richardson"})
    other = own.model_copy(update={"spec": spec, "id": spec.id})
    with pytest.raises(RecordError, match="its weights are those of"):
        require_own_weights(tmp_path / "other", other, [(own.path, own)])


def with_noise(states, size):
    draws = torch.Generator().manual_seed(0)
    return {
        seed: {n: v * (1 + size * torch.randn(v.shape, generator=draws)) for n, v in state.items()}
        for seed, state in states.items()
    }


def test_noise_on_many_weights_makes_no_other_training(trained):
    """The answers are those of another training, and the weights of a published one."""
    own, copy = trained
    own_record = read_record(own)
    for size, is_copy in ((3e-3, True), (0.3, False)):
        noisy = with_weights(copy, with_noise(states_of(own), size))
        record = read_record(noisy)
        if is_copy:
            with pytest.raises(RecordError, match="its weights are those of"):
                require_own_weights(noisy, record, [(own, own_record)])
        else:
            require_own_weights(noisy, record, [(own, own_record)])


@pytest.mark.parametrize(("noise", "reason"), [(0.0, "by other settings"), (3e-3, "are those of")])
def test_weights_of_a_study_s_record_are_its_own(trained, tmp_path, noise, reason):
    """Findings rest on what a study's settings lead to; most of its records are on no board."""
    own, copy = trained
    boards = tmp_path / "boards"
    shutil.copytree(tmp_path / "own", boards / "studies/rates")
    forged = with_weights(copy, with_noise(states_of(own), noise))
    with pytest.raises(RecordError, match=reason):
        require_own_training(forged, read_record(forged), boards)
    # Its own record may be submitted too, and so may other weights.
    require_own_training(own, read_record(own), boards)
    run(model="baseconv", **TINY, recipe_args={"learning_rate": 3e-3}, out=tmp_path / "third")
    (third,) = RecordStore(tmp_path / "third").paths()
    require_own_training(third, read_record(third), boards)
