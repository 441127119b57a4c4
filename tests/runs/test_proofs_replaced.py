"""A record that another process replaces while it is verified keeps what that process wrote."""

from __future__ import annotations

import pytest

from iclbench import RecordError, RecordStore, evaluate_shifts, run
from iclbench.runs import shift_records
from iclbench.runs.store import read_record
from iclbench.sweeps import verification
from iclbench.sweeps.verification import VerifyRequest, verify_job

TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 32}


@pytest.fixture
def path(tmp_path):
    return RecordStore(tmp_path).path(run(model="zero", **TINY, out=tmp_path).spec)


def during(monkeypatch, module, name, act):
    """Have `act` happen once, after the named function of a module has done its work."""
    original = getattr(module, name)
    done = []

    def and_then(*args, **options):
        outcome = original(*args, **options)
        if not done:
            done.append(True)
            act()
        return outcome

    monkeypatch.setattr(module, name, and_then)


def test_a_record_that_is_replaced_while_it_is_verified_gets_no_proof(path, monkeypatch):
    def replace():
        record = read_record(path)
        RecordStore(path.parents[1]).write(record.model_copy(update={"parameters": 12345}).sealed())

    during(monkeypatch, verification, "verify", replace)
    (outcome,) = verify_job(([path], VerifyRequest("cpu", write=True)))
    assert "it was replaced while it was verified; verify it again" in outcome.problem
    record = read_record(path)
    assert (record.parameters, record.proof) == (12345, None)


def test_shifts_that_two_processes_add_are_all_there(path, monkeypatch):
    during(monkeypatch, shift_records, "measure_shifts", lambda: evaluate(path, "uniform"))
    evaluate(path, "quadrants")
    record = read_record(path)
    assert sorted(record.evaluations) == ["main", "quadrants", "uniform"]
    assert "--shift quadrants,uniform" in record.command or "uniform,quadrants" in record.command


def evaluate(path, shift):
    """As another process would, which has no part in this one's runs."""
    return shift_records.evaluate_shifts.__wrapped__(path, [shift], "cpu")


def test_a_record_that_is_run_again_while_it_is_evaluated_stays(path, monkeypatch):
    def run_again():
        record = read_record(path).model_copy(update={"created": "2026-01-01T00:00:00+00:00"})
        RecordStore(path.parents[1]).write(record.sealed())

    during(monkeypatch, shift_records, "measure_shifts", run_again)
    with pytest.raises(RecordError, match="replaced while it was evaluated; run this again"):
        evaluate_shifts(path, ["quadrants"], "cpu")
    assert sorted(read_record(path).evaluations) == ["main"]
