"""Existing records: reused, reported, replaced only with force."""

from __future__ import annotations

import pytest
from small_runs import TINY

from iclbench import (
    RecordError,
    RecordStore,
    RunSpec,
    run,
    verify,
)
from iclbench.runs.plan import resolve
from iclbench.runs.reuse import standing
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.training.loop import Training


def test_a_run_with_a_record_is_reported_and_not_rerun(tmp_path, capsys):
    first = run(model="transformer", **TINY, out=tmp_path)
    again = run(model="transformer", **TINY, out=tmp_path)
    assert again == first
    assert f"has a record of {first.created}; `run --force` replaces it" in capsys.readouterr().err
    forced = run(model="transformer", **TINY, out=tmp_path, force=True)
    assert forced.id == first.id
    assert forced.metrics == first.metrics
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("objects/*/*")} == {
        reference.name for reference in first.files()
    }


def test_a_record_of_other_code_is_reported(tmp_path, capsys):
    record = run(model="zero", **TINY, out=tmp_path)
    old = [p.model_copy(update={"source": "0" * 64}) for p in record.plugins]
    RecordStore(tmp_path).write(record.model_copy(update={"plugins": old}))
    run(model="zero", **TINY, out=tmp_path)
    assert "made by another version of iclbench, least-squares, solvers" in capsys.readouterr().err


def test_an_interrupted_forced_run_leaves_the_old_record(tmp_path, monkeypatch):
    record = run(model="baseconv", **TINY, out=tmp_path)

    def cut(self, record):
        raise KeyboardInterrupt

    plan = resolve(RunSpec(model="baseconv", **TINY))
    monkeypatch.setattr(RecordStore, "write", cut)
    monkeypatch.setattr(plan.task, "version", 1)
    with pytest.raises(KeyboardInterrupt):
        run_plans([plan], Settings(tmp_path, force=True, eval_batch=7))
    monkeypatch.undo()
    again = run(model="baseconv", **TINY, out=tmp_path)
    assert again == record
    assert all(check.holds for check in verify(RecordStore(tmp_path).path(record.spec)))


def test_a_forced_training_that_was_cut_off_continues(tmp_path, monkeypatch, capsys):
    plan = resolve(RunSpec(model="baseconv", **TINY, recipe_args={"chunk": 5}))
    (first,) = run_plans([plan], Settings(tmp_path))
    settings = Settings(tmp_path, force=True, checkpoint_seconds=0)
    advance = Training.advance

    def cut(self):
        if self.step:
            raise KeyboardInterrupt
        return advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "advance", cut)
        with pytest.raises(KeyboardInterrupt):
            run_plans([plan], settings)
    (checkpoint,) = (tmp_path / "checkpoints").glob("*")
    checkpoint.with_name(f".{checkpoint.name}.0123456789abcdef.tmp").write_bytes(b"killed")
    (record,) = run_plans([plan], settings)
    assert "continuing from step" in capsys.readouterr().err
    assert record.created >= first.created
    assert record.weights_file == first.weights_file
    assert not list((tmp_path / "checkpoints").glob("*"))


def test_a_damaged_record_is_an_error(tmp_path):
    record = run(model="zero", **TINY, out=tmp_path)
    path = RecordStore(tmp_path).path(record.spec)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(RecordError, match="truncated"):
        run(model="zero", **TINY, out=tmp_path)
    assert run(model="zero", **TINY, out=tmp_path, force=True).metrics == record.metrics


def test_a_record_is_missing_incomplete_damaged_or_whole(tmp_path):
    store, spec = RecordStore(tmp_path), resolve(RunSpec(model="zero", **TINY)).spec
    assert standing(store, spec).state == "missing"
    run(model="zero", **TINY, out=tmp_path)
    assert standing(store, spec).is_whole
    lacking = standing(store, spec, ["quadrants"])
    assert (lacking.state, lacking.missing_shifts) == ("incomplete", ("quadrants",))
    text = store.path(spec).read_text()
    for damaged in (text[:-30], text.replace('"parameters"', '"parametres"')):
        store.path(spec).write_text(damaged)
        for shifts in ((), ("quadrants",)):
            stands = standing(store, spec, shifts)
            assert (stands.state, stands.to_run) == ("damaged", False)
            assert str(store.path(spec)) in stands.problem


def test_one_solver_has_one_record_whatever_the_recipe(tmp_path):
    args = {**TINY, "task_args": {}}
    specs = [
        resolve(RunSpec(model="zero", **{**args, "recipe": r, "seeds": s})).spec
        for r, s in (("smoke", 1), ("quick", 3))
    ]
    assert specs[0].id == specs[1].id
