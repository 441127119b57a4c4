"""Verifying: sound records hold; forged, contradictory and foreign ones don't."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from safetensors.numpy import save
from small_runs import TINY

from iclbench import RecordError, RecordStore, run, verify
from iclbench.runs.statistics import summarize
from iclbench.runs.store import read_per_prompt, read_record


def test_solver_and_trained_records_verify(store):
    for path in store.paths():
        checks = verify(path)
        names = {check.name for check in checks}
        assert {"parameters", "squared_error mean", "floor squared_error median"} <= names
        if "prefixes" in str(path):
            assert {"prefix_error mean at 3", "floor prefix_error median at 0"} <= names
        if "baseconv" in path.name:
            assert "seed 1 squared_error q95" in names
        assert all(check.holds for check in checks)
        assert all(check.recorded == check.measured for check in checks)


def test_a_trained_record_verifies_from_its_weights_alone(copied):
    assert all(check.holds for check in verify(copied))
    (weights,) = copied.parent.glob("*.weights.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    with pytest.raises(RecordError, match="SHA-256"):
        verify(copied)


def resealed(path: Path, **changes) -> None:
    record = read_record(path)
    path.write_text(record.model_copy(update=changes).sealed().model_dump_json())


def forged(statistics, **changes):
    return {"squared_error": statistics["squared_error"].model_copy(update=changes)}


def test_a_resealed_statistic_contradicts_the_prompts_values(copied):
    """A change of any statistic is noticed, also of the floor or of one seed."""
    record = read_record(copied)
    text = copied.read_text()
    seeds = [record.seeds[0].model_copy(update={"metrics": forged(record.metrics, q95=1e-9)})]
    for changes in (
        {"metrics": forged(record.metrics, mean=1e-9)},
        {"metrics": forged(record.metrics, low=1e-9)},
        {"floor": forged(record.floor, median=0.5)},
        {"seeds": [*seeds, *record.seeds[1:]]},
    ):
        resealed(copied, **changes)
        with pytest.raises(RecordError, match="its squared_error is not that of"):
            verify(copied)
        copied.write_text(text)
    resealed(copied, parameters=3)
    assert [check.name for check in verify(copied) if not check.holds] == ["parameters"]


def test_a_consistent_forgery_does_not_hold(copied):
    """Values, statistics and digests agree, but the model gives other numbers."""
    record = read_record(copied)
    arrays = {name: v * 1e-3 for name, v in read_per_prompt(copied, record).items()}
    data = save(arrays)
    file = copied.parent / record.per_prompt.file
    file.write_bytes(data)
    values = arrays["metric/squared_error"]
    resealed(
        copied,
        metrics={"squared_error": summarize(values, "squared")},
        floor={"squared_error": summarize(arrays["floor/squared_error"][None], "squared")},
        seeds=[
            seed.model_copy(
                update={"metrics": {"squared_error": summarize(values[i : i + 1], "squared")}}
            )
            for i, seed in enumerate(record.seeds)
        ],
        per_prompt=record.per_prompt.model_copy(
            update={"sha256": hashlib.sha256(data).hexdigest()}
        ),
    )
    failing = {check.name for check in verify(copied) if not check.holds}
    assert {"squared_error mean", "squared_error median", "seed 0 squared_error mean"} <= failing


def test_other_evaluation_prompts_are_noticed(copied):
    record = read_record(copied)
    report = record.evaluation.model_copy(update={"digest": "0" * 64})
    resealed(copied, evaluation=report)
    with pytest.raises(RecordError, match="prompts are not those"):
        verify(copied)


def test_another_version_of_the_task_is_noticed(copied):
    record = read_record(copied)
    spec = record.spec.model_copy(update={"task_version": 99})
    resealed(copied, spec=spec, id=spec.id)
    with pytest.raises(RecordError, match="version 99"):
        verify(copied)


def test_the_wide_tolerance_is_for_the_floor_of_the_arithmetic_alone(tmp_path):
    """With noise the floor is large: so numbers of another model are not taken for rounding."""
    args = {**TINY, "task_args": {"dim": 2, "examples": 4, "noise": 0.5}}
    noisy = RecordStore(tmp_path)
    ridge = run(model="ridge", **args, out=tmp_path, model_args={"ridge": 0.01})
    other = run(model="ridge", **args, out=tmp_path, model_args={"ridge": 0.5})
    path = noisy.path(ridge.spec)
    resealed(
        path,
        metrics=other.metrics,
        seeds=other.seeds,
        per_prompt=other.per_prompt,
    )
    assert not all(check.holds for check in verify(path))
