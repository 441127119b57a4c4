"""Verifying many records: in processes, in order, with prompts that are made once."""

from __future__ import annotations

import gc
import json
import os
import weakref

import pytest
import torch

from iclbench import RecordStore, RunSpec, run
from iclbench.api.task import Task
from iclbench.cli.verify import Summary
from iclbench.runs.comparison import Check
from iclbench.runs.plan import resolve
from iclbench.runs.shared_prompts import evaluation_parts, shared_prompts
from iclbench.runs.store import read_record
from iclbench.sweeps import verification
from iclbench.sweeps.verification import Verified, VerifyRequest, default_workers, verify_all
from iclbench_solvers.simple import Averaging

TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 32}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    for model in ("zero", "averaging", "ridge"):
        run(model, **TINY, out=out)
    return out


@pytest.fixture
def paths(folder):
    return list(RecordStore(folder).paths())


@pytest.mark.slow
def test_workers_give_the_outcomes_of_one_process_in_order(paths, tmp_path, monkeypatch):
    monkeypatch.setattr(verification, "MOST", 1)
    damaged = tmp_path / "broken-0123456789abcdef.json"
    damaged.write_text("{}")
    asked = [paths[2], damaged, paths[0], paths[1]]
    alone, together = (list(verify_all(asked, VerifyRequest("cpu"), n)) for n in (1, 2))
    assert [outcome.path for outcome in together] == asked
    assert [outcome.problem for outcome in together] == [outcome.problem for outcome in alone]
    assert together[1].checks == []
    for one, two in zip(alone, together, strict=True):
        assert [check.name for check in one.checks] == [check.name for check in two.checks]
        assert not two.failing


def test_a_record_that_differs_is_named_by_the_command(cli, folder, paths, tmp_path):
    outcome = cli("verify", folder, "--workers", 1, "--format", "json", "--sort", "-record")
    rows = json.loads(outcome.out)
    assert [row["record"] for row in rows] == sorted(map(str, paths), reverse=True)
    assert {(row["outcome"], row["differing"]) for row in rows} == {("holds", 0)}
    facts = json.loads(cli("verify", paths[0], "--all", "--format", "json").out)
    assert len(facts) == rows[-1]["facts"]
    (tmp_path / "truncated-0123456789abcdef.json").write_text("{")
    refused = cli("verify", tmp_path, "--columns", "outcome")
    assert refused.code == 2
    assert "can't be verified" in refused.out


def die_or_verify(job):
    paths, _ = job
    if any(path.stem == "deadly" for path in paths):
        os._exit(1)
    return [Verified(path) for path in paths]


def test_a_process_that_dies_costs_only_the_record_that_ends_it(tmp_path, monkeypatch):
    monkeypatch.setattr(verification, "verify_job", die_or_verify)
    paths = [tmp_path / f"{name}.json" for name in ("first", "deadly", "third", "fourth")]
    outcomes = list(verify_all(paths, VerifyRequest(), 2))
    assert [outcome.path for outcome in outcomes] == paths
    problems = {outcome.path: outcome.problem for outcome in outcomes if outcome.problem}
    assert problems == {paths[1]: f"{paths[1]}: its process ended with exit code 1"}


def test_an_outcome_is_kept_no_longer_than_a_later_path_needs_it(tmp_path, monkeypatch):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    references = {}

    def outcomes(parts, request, workers):
        for path in (second, first, third):
            outcome = Verified(path)
            references[path] = weakref.ref(outcome)
            yield outcome
            del outcome

    monkeypatch.setattr(verification, "_outcomes", outcomes)
    held = []
    asked = [first, second, first, third]
    for path, outcome in zip(asked, verify_all(asked, VerifyRequest(), 2), strict=True):
        assert outcome.path == path
        gc.collect()
        held.append({p.name for p, reference in references.items() if reference() is not None})
        del outcome
    assert held[-1] == {"third"}


def leave(*_):
    raise SystemExit(0)


def test_a_plugin_that_exits_fails_its_own_record_alone(cli, folder, monkeypatch):
    monkeypatch.setattr(Averaging, "build", leave)
    outcome = cli("verify", folder, "--workers", 1)
    assert outcome.code == 2
    assert "averaging" in outcome.err
    assert "SystemExit: 0" in outcome.err
    assert "2 of 3 records hold, 1 can't be verified" in outcome.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "cuda:99"), "does not exist"),
        (("--device", "cuda:1", "--workers", "2"), "several workers use one GPU each"),
    ],
)
def test_a_device_that_cannot_be_used_is_refused_before_any_record(cli, folder, options, message):
    refused = cli("verify", folder, *options)
    assert (refused.code, refused.out, message in refused.err) == (2, "", True), refused.err
    assert refused.err.count("\n") == 1


def test_prompts_of_a_board_are_made_once_within_a_block(paths, monkeypatch):
    made = []
    parts = Task.evaluation_parts
    monkeypatch.setattr(
        Task, "evaluation_parts", lambda *args: made.append(args[0].name) or parts(*args)
    )
    assert not any(outcome.failing for outcome in verify_all(paths, VerifyRequest("cpu"), 1))
    assert made == ["least-squares"]
    plans = [resolve(RunSpec(model="zero", **{**TINY, **change})) for change in (
        {}, {"dtype": "float64"}, {"eval_seed": 1}, {"task_args": {"dim": 2, "examples": 5}},
    )]  # fmt: skip
    made.clear()
    with shared_prompts():
        digests = [digest_of(plan) for plan in plans for _ in range(2)]
    assert len(made) == 4
    assert digests[::2] == digests[1::2]
    # A dtype rounds the same draws.
    assert len(set(digests)) == 3


def digest_of(plan):
    with evaluation_parts(plan) as (parts, digest):
        (batches,) = parts
    assert batches[0].target.dtype == torch.float64
    return digest.hexdigest()


def test_a_record_with_shifts_holds_where_prompts_are_shared(tmp_path):
    record = run("zero", **TINY, shift=["values-triple"], out=tmp_path)
    (outcome,) = verify_all([RecordStore(tmp_path).path(record.spec)], VerifyRequest("cpu"), 1)
    assert [check.name for check in outcome.failing] == []


def test_a_damaged_record_decides_the_exit_code_after_one_that_differs(tmp_path):
    summary = Summary(2, every=False, quiet=True)
    summary.add(Verified(tmp_path, [Check("fact", 1, 2, False)]))
    assert summary.code == 1
    summary.add(Verified(tmp_path, problem="damaged"))
    assert summary.code == 2


def test_a_proof_is_written_where_asked_and_one_of_training_again_is_kept(cli, tmp_path):
    path = run("baseconv", recipe="smoke", seeds=1, **TINY, out=tmp_path).path
    before = path.read_bytes()
    told = cli("verify", path, "--retrain").out
    assert "  trained again: the weights have the same bits\n" in told
    assert "training curve:" not in told  # it is no mere claim now
    assert "training curve:" in cli("verify", path).out
    assert path.read_bytes() == before
    assert cli("verify", path, "--retrain", "--write").code == 0
    assert cli("verify", path, "--write").code == 0
    assert read_record(path).proof.kind == "retrained"


def test_few_records_need_no_further_process(monkeypatch):
    monkeypatch.setattr(verification, "usable_cores", lambda: 16)
    monkeypatch.setattr(verification, "visible_gpus", list)
    counts = {n: default_workers(n, VerifyRequest()) for n in (0, 1, 15, 16, 1000)}
    assert counts == {0: 1, 1: 1, 15: 1, 16: 2, 1000: 16}
    assert default_workers(1000, VerifyRequest(retrain=True)) == 1
    monkeypatch.setattr(verification, "visible_gpus", lambda: ["0"])
    assert default_workers(1000, VerifyRequest()) == 1
    assert default_workers(1000, VerifyRequest("cpu")) == 16
    monkeypatch.setattr(verification, "visible_gpus", lambda: ["0", "1"])
    assert default_workers(1000, VerifyRequest("cuda")) == 2
    # Each of several workers would see one GPU, so there would be no number 1.
    assert default_workers(1000, VerifyRequest("cuda:1")) == 1


def test_to_debug_one_record_stops_no_other(cli, tmp_path, monkeypatch):
    for model in ("zero", "averaging"):
        run(model=model, task="least-squares", eval_prompts=8, out=tmp_path)
    damaged, _ = RecordStore(tmp_path).paths()
    damaged.write_text("{")
    monkeypatch.setenv("ICLBENCH_DEBUG", "1")
    outcome = cli("verify", tmp_path)
    assert outcome.code == 2
    assert "1 of 2 records hold, 1 can't be verified" in outcome.err + outcome.out
    assert "Traceback" in outcome.err
