"""Evaluating under shift: what records hold, that nothing is trained again, and forgeries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from forging import reseal
from small_runs import TINY

from iclbench import (
    RecordError,
    RecordStore,
    RunError,
    RunSpec,
    UsageError,
    evaluate_shifts,
    run,
    verify,
)
from iclbench.runs import shifts as shifts_module
from iclbench.runs.measure import measure
from iclbench.runs.plan import resolve
from iclbench.runs.proofs import with_proof, write_proof
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record
from iclbench_least_squares.fixed import LeastSquares

TWO = ("quadrants", "examples-double")


@pytest.fixture
def trained(tmp_path):
    record = run(model="transformer", **TINY, out=tmp_path, model_args={"layers": 1, "width": 4})
    return tmp_path, record


def shifted(folder, *names):
    return run(model="transformer", **TINY, out=folder, model_args={"layers": 1, "width": 4},
               shift=names)  # fmt: skip


def failing(path):
    return [check.name for check in verify(path) if not check.holds]


def test_a_record_gets_evaluations_and_nothing_is_trained_again(trained):
    folder, before = trained
    after = shifted(folder, *TWO)
    assert after.id == before.id
    assert after.created == before.created
    assert after.weights_file == before.weights_file
    assert after.main == before.main
    assert set(after.evaluations) == {"main", "quadrants"}
    # Positions are learned for four examples.
    assert (
        "positions is (5, 4), and these prompts need (9, 4)"
        in after.not_applicable["examples-double"]
    )
    assert "--shift examples-double,quadrants" in after.command
    path = RecordStore(folder).path(after.spec)
    assert failing(path) == []
    # Asked again, or for fewer, nothing changes.
    assert shifted(folder, "quadrants") == after


def test_a_run_with_shifts_is_that_run_and_shifts_added(trained, tmp_path_factory):
    folder, _ = trained
    added = shifted(folder, *TWO)
    at_once = shifted(tmp_path_factory.mktemp("other"), *TWO)
    assert at_once.id == added.id
    assert at_once.command == added.command
    assert at_once.evaluations["quadrants"].metrics == added.evaluations["quadrants"].metrics


def test_solvers_are_evaluated_at_other_lengths(tmp_path):
    record = run(model="least-squares-qr", **TINY, out=tmp_path, shift=("all",))
    assert record.not_applicable == {}
    doubled = record.evaluations["examples-double"]
    assert doubled.task_args["examples"] == 8
    assert doubled.shift == "examples-double"
    assert record.evaluations["inputs-double"].target_size == pytest.approx(
        2 * record.evaluations["inputs-half"].target_size * 2
    )
    assert failing(RecordStore(tmp_path).path(record.spec)) == []


@pytest.mark.parametrize(
    ("shift", "message"),
    [
        (("quadrant",), "unknown shift 'quadrant'; did you mean 'quadrants'"),
        (("orthogonal",), "unknown shift 'orthogonal'"),
        (("all", "quadrant"), "unknown shift 'quadrant'"),
    ],
)
def test_a_shift_that_is_not_defined_is_refused_before_anything_runs(tmp_path, shift, message):
    with pytest.raises(UsageError, match=message):
        run(model="zero", **TINY, out=tmp_path, shift=shift)
    assert not list(RecordStore(tmp_path).paths())


def test_a_task_without_shifts_is_refused(tmp_path):
    with pytest.raises(UsageError, match="read has no shifts"):
        run(model="zero", task="read", eval_prompts=8, out=tmp_path, shift=("all",))


def forge(path, change):
    return reseal(path, lambda content: change(content["evaluations"]["quadrants"], content))


def halve(quadrants, content):
    digits = quadrants["metrics"]["squared_error"]["digits"]
    digits["mean"] += 0.3


def other_prompts(quadrants, content):
    quadrants["digest"] = "0" * 64


def dropped(quadrants, content):
    del content["evaluations"]["quadrants"]


def renamed(quadrants, content):
    content["evaluations"]["overlapping"] = content["evaluations"].pop("quadrants")


def claimed(quadrants, content):
    content["not_applicable"]["quadrants"] = "too hard"
    del content["evaluations"]["quadrants"]


def of_training(quadrants, content):
    main = content["evaluations"]["main"]
    content["evaluations"]["quadrants"] = {**main, "shift": "quadrants"}


@pytest.mark.parametrize("change", [halve, other_prompts, dropped, renamed, claimed, of_training])
def test_a_forged_evaluation_under_shift_is_refused(trained, change):
    folder, _ = trained
    path = RecordStore(folder).path(shifted(folder, *TWO).spec)
    forged = forge(path, change)
    if change is halve:
        with pytest.raises(RecordError, match="do not follow from its stored values"):
            verify(forged)
    else:
        assert failing(forged)


def test_a_forged_size_of_targets_does_not_hold(tmp_path):
    record = run("zero", **TINY, shift=["inputs-double"], out=tmp_path)
    path = RecordStore(tmp_path).path(record.spec)
    assert failing(path) == []

    def change(content):
        content["evaluations"]["inputs-double"]["target_size"] *= 2

    assert failing(reseal(path, change)) == ["shift inputs-double target size"]


def test_a_further_shift_keeps_the_reasons_of_those_before(trained):
    folder, _ = trained
    before = shifted(folder, "examples-double")
    after = shifted(folder, "quadrants")
    assert after.not_applicable == before.not_applicable != {}


def test_records_with_shifts_are_read_back(trained):
    folder, _ = trained
    record = shifted(folder, *TWO)
    assert read_record(RecordStore(folder).path(record.spec)) == record


def test_a_shift_that_fails_is_named_and_the_others_are_kept(trained, monkeypatch):
    folder, _ = trained
    whole = LeastSquares.shifts.fget

    def broken(draws, random):
        raise ValueError("no quadrant")

    def shifts(self):
        return {**whole(self), "quadrants": replace(whole(self)["quadrants"], change=broken)}

    with monkeypatch.context() as patch:
        patch.setattr(LeastSquares, "shifts", property(shifts))
        reason = "transformer on least-squares: shift quadrants: ValueError: no quadrant$"
        with pytest.raises(RunError, match=reason):
            shifted(folder, *TWO, "skewed")
        (path,) = RecordStore(folder).paths()
        record = read_record(path)
        assert set(record.evaluations) == {"main", "skewed"}
        assert list(record.not_applicable) == ["examples-double"]
        # Nothing but the broken one is left to do.
        with pytest.raises(RunError, match=reason):
            shifted(folder, *TWO, "skewed")
    assert set(shifted(folder, *TWO, "skewed").evaluations) == {"main", "quadrants", "skewed"}


def test_a_failing_shift_of_one_run_leaves_those_of_the_next(tmp_path, monkeypatch):
    """Runs that were trained as one program each get their shifts."""
    plans = [
        resolve(RunSpec(model="lsa", **TINY, recipe_args={"learning_rate": rate},
                        shift=("noisy", "skewed")))
        for rate in (1e-3, 2e-3)
    ]  # fmt: skip
    failed = []

    def failing_once(*args):
        if not failed:
            failed.append(True)
            raise RuntimeError("boom")
        return measure(*args)

    monkeypatch.setattr(shifts_module, "measure", failing_once)
    with pytest.raises(RunError, match="lsa on least-squares: shift noisy: RuntimeError: boom"):
        run_plans(plans, Settings(tmp_path, device="cpu"))
    held = [set(read_record(path).evaluations) for path in RecordStore(tmp_path).paths()]
    assert sorted(map(len, held)) == [2, 3]


def test_without_shifts_none_is_made(tmp_path, monkeypatch):
    """Some draw matrices as large as the prompts are wide, squared."""

    def shifts(self):
        raise MemoryError("they were made")

    monkeypatch.setattr(LeastSquares, "shifts", property(shifts))
    args = {"dim": 2, "examples": 4}
    record = run("zero", "least-squares", task_args=args, eval_prompts=8, out=tmp_path)
    assert list(record.evaluations) == ["main"]
    with pytest.raises(MemoryError):
        run("zero", "least-squares", task_args=args, shift=["noisy"], out=tmp_path)


def test_further_evaluations_end_a_proof_that_has_not_seen_them(trained, monkeypatch):
    folder, before = trained
    path = RecordStore(folder).path(before.spec)
    write_proof(path, with_proof(before, "cpu"), before)
    assert read_record(path).proof is not None
    monkeypatch.chdir(path.parent)
    # A record may be named from within its folder.
    after = evaluate_shifts(path.name, "quadrants", "cpu")
    assert after.proof is None
    assert set(after.evaluations) == {"main", "quadrants"}
    assert read_record(path) == after
    assert failing(path) == []
