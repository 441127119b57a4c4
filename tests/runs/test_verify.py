"""Verifying: sound records hold; forged, contradictory and foreign ones don't."""

from __future__ import annotations

from pathlib import Path

import pytest
from forging import reseal, states_of, with_values, with_weights
from small_runs import TINY

from iclbench import RecordError, RecordStore, run, verify
from iclbench.runs.store import read_record, read_values


def test_solver_and_trained_records_verify(store):
    paths = list(store.paths())
    assert len(paths) == 3
    for path in paths:
        checks = verify(path)
        names = {check.name for check in checks}
        assert {"parameters", "squared_error mean", "floor squared_error median"} <= names
        if "prefixes" in str(path):
            assert {"prefix_error mean at 3", "floor prefix_error median at 0"} <= names
        if "baseconv" in path.name:
            assert "seed 1 squared_error q95" in names
        assert all(check.holds for check in checks)
        # A text says what was expected; everything else was computed again.
        computed = [check for check in checks if not isinstance(check.measured, str)]
        assert all(check.recorded == check.measured for check in computed)


def test_a_trained_record_verifies_from_its_weights_alone(copied):
    assert all(check.holds for check in verify(copied))
    (weights,) = copied.parents[1].glob("objects/*/*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    with pytest.raises(RecordError, match="SHA-256"):
        verify(copied)


def edit_main(change):
    return lambda content: change(content["evaluations"]["main"])


def test_a_resealed_statistic_contradicts_the_prompts_values(copied):
    """A change of any statistic is noticed, also of the floor or of one seed."""
    text = copied.read_text()
    for change in (
        lambda main: main["metrics"]["squared_error"].update(mean=1e-9),
        lambda main: main["metrics"]["squared_error"].update(low=1e-9),
        lambda main: main["floor"]["metrics"]["squared_error"].update(median=0.5),
        lambda main: main["seeds"][0]["squared_error"].update(q95=1e-9),
    ):
        reseal(copied, edit_main(change))
        with pytest.raises(RecordError, match="its statistics of squared_error do not follow from"):
            verify(copied)
        copied.write_text(text)
    reseal(copied, lambda content: content.update(parameters=3))
    assert failing(copied) == {"parameters"}


def failing(path: Path) -> set[str]:
    return {check.name for check in verify(path) if not check.holds}


def test_a_consistent_forgery_does_not_hold(copied):
    """Values, statistics and digests agree, but the model gives other numbers."""
    main = read_record(copied).main
    values = read_values(copied, main.values)["squared_error"] * 1e-3
    floor = read_values(copied, main.floor.values)["squared_error"] * 1e-3
    path = with_values(copied, {"squared_error": values}, {"squared_error": floor})
    expected = {
        "squared_error mean",
        "squared_error of every prompt, values that agree",
        "seed 0 squared_error mean",
    }
    assert expected <= failing(path)
    assert "floor squared_error mean digits" in failing(path)


def test_other_evaluation_prompts_are_noticed(copied):
    path = reseal(copied, edit_main(lambda main: main.update(digest="0" * 64)))
    assert failing(path) == {"evaluation digest"}


def test_another_version_of_the_task_is_noticed(copied):
    path = reseal(copied, lambda content: content["spec"].update(task_version=99))
    with pytest.raises(RecordError, match="version 99"):
        verify(path)


def test_the_wide_tolerance_is_for_the_floor_of_the_arithmetic_alone(tmp_path):
    """With noise the floor is large: so numbers of another model are not taken for rounding."""
    args = {**TINY, "task_args": {"dim": 2, "examples": 4, "noise": 0.5}}
    ridge = run(model="ridge", **args, out=tmp_path, model_args={"ridge": 0.01})
    other = run(model="ridge", **args, out=tmp_path, model_args={"ridge": 0.5})
    store = RecordStore(tmp_path)
    values = read_values(store.path(other.spec), other.main.values)
    assert failing(with_values(store.path(ridge.spec), values))


def test_seeds_that_train_few_of_their_weights_are_no_copies(tmp_path):
    """All start from the same loaded weights; only those that are trained tell them apart."""
    args = {**TINY, "model": "transformer", "model_args": {"layers": 1, "width": 32}}
    first = run(**{**args, "seeds": (0,)}, out=tmp_path)
    weights = RecordStore(tmp_path).objects.path(first.weights_file)
    names = ("positions", "embed.*", "blocks.*", "norm.*")
    tuned = run(**args, init=str(weights), freeze=names, out=tmp_path)
    assert failing(RecordStore(tmp_path).path(tuned.spec)) == set()


def test_seeds_in_any_order_verify(tmp_path):
    record = run(model="baseconv", **{**TINY, "seeds": (1, 0)}, out=tmp_path)
    assert [seed.seed for seed in record.seeds] == [1, 0]
    assert failing(RecordStore(tmp_path).path(record.spec)) == set()


def test_a_frozen_parameter_that_moved_is_noticed(fake, tmp_path):
    spec = {**TINY, "init": "partial", "freeze": ["readout.*"], "recipe_args": {"steps": 3}}
    path = run(model="fake", **spec, out=tmp_path).path
    assert failing(path) == set()
    states = states_of(path)
    states[0]["readout.weight"] += 1.0
    assert "frozen parameters that moved" in failing(with_weights(path, states))
