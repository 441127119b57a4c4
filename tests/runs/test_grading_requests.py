"""Requesting a grader: its options, its key and budget, what enters the run's id."""

from __future__ import annotations

import os
import re

import pytest
from fake_openai import Reply, completion, error, serving
from storytelling import (
    TINY,
    Length,
    tell,
)

from iclbench import (
    RecordStore,
    RunError,
    RunSpec,
    UsageError,
    hookimpl,
    run,
)
from iclbench.plugins import host
from iclbench.runs.store import read_record

pytestmark = pytest.mark.usefixtures("storytelling")


def test_ids_of_runs_without_a_grader_are_as_they_were():
    spec = RunSpec(model="zero", task="least-squares")
    assert not [name for name in spec.model_dump() if name.startswith("grader")]


def test_arguments_that_change_no_score_change_no_id(tmp_path):
    first = tell(tmp_path)
    before = Length.asked
    assert tell(tmp_path, grader_args={"speed": 9}, grader_budget=3.0).id == first.id
    assert Length.asked == before
    assert tell(tmp_path, grader_args={"factor": 2}).id != first.id
    assert run(model="averaging", task="storyteller", out=tmp_path, **TINY).id != first.id


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"grader": "lenght"}, "unknown grader 'lenght'; did you mean 'length'"),
        ({"grader_args": {"facter": 1}}, "unknown field 'facter'; did you mean 'factor'?"),
        ({"grader": None, "grader_args": {"factor": 1}}, "--grader-args needs --grader"),
        ({"grader": None, "grader_budget": 1.0}, "--grader-budget needs --grader"),
        ({"grader_budget": 0.0}, "grader_budget"),
        ({"task": "least-squares"}, "least-squares has nothing to grade"),
    ],
)
def test_unsuitable_requests_are_refused(tmp_path, more, message):
    with pytest.raises(UsageError, match=message):
        tell(tmp_path, **more)
    assert not list(tmp_path.rglob("*.json*"))


def test_the_command_line_runs_lists_and_describes_it(tmp_path, cli):
    args = ("--model", "averaging", "--task", "storyteller", "--eval-prompts", 16)
    outcome = cli("run", *args, "--grader", "length", "--grader-args", "factor=2,speed=3",
                "--grader-budget", 0.5, "--out", tmp_path)  # fmt: skip
    assert outcome.code == 0, outcome.err
    (path,) = RecordStore(tmp_path).paths()
    record = read_record(path)
    assert record.spec.grader_args == {"factor": 2.0, "fail": None}
    assert "--grader length --grader-args factor=2,speed=3 --grader-budget 0.5" in record.command
    assert "length" in cli("ls", "graders").out
    shown = cli("describe", "length").out
    assert shown.startswith("length: grader of the plugin test-plugin")
    assert re.search(r"^factor +number +1\.0 +of each length$", shown, re.M)


def test_a_dry_run_says_what_is_graded_and_what_it_costs_at_least(cli, tmp_path):
    args = ("run", "--model", "zero", "--task", "storyteller", "--out", tmp_path, "--dry-run")
    assert "grade about 4 endings with length, free" in cli(*args, "--grader", "length").out
    assert re.search(
        r"4 endings with openai, for at least 0\.00\d\d USD", cli(*args, "--grader", "openai").out
    )
    other = ("--grader", "openai", "--grader-args", "model=mine")
    assert "with openai, at an unknown cost" in cli(*args, *other).out


class Fails(Length):
    name = "fails"
    failing = True

    def grade(self, completions, folder):
        if self.failing:
            raise RunError("out of ink")
        return super().grade(completions, folder)


def test_a_run_whose_grading_failed_is_not_trained_again(tmp_path, provide, monkeypatch):
    class Watch:
        steps = 0

        @hookimpl
        def iclbench_training_step(self, spec, step, loss):
            self.steps += 1

    provide("grader", "fails", Fails)
    small = {"model_args": {"layers": 1, "width": 4}, "recipe_args": {"steps": 20, "batch": 2}}
    watch = Watch()
    with host().observing(watch, "watch"):
        with pytest.raises(RunError, match="out of ink"):
            tell(tmp_path, model="transformer", grader="fails", **small)
        trained = watch.steps
        assert trained > 0
        monkeypatch.setattr(Fails, "failing", False)
        record = tell(tmp_path, model="transformer", grader="fails", **small)
    assert watch.steps == trained
    assert record.grader.completions == 8


def test_a_run_is_graded_by_an_api_and_verified_without_it(tmp_path, cli, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(lambda number, asked: Reply(completion())) as server:
        args = ("--model", "averaging", "--task", "storyteller", "--eval-prompts", 16,
                "--grader", "openai", "--out", tmp_path, "--grader-args",
                f"base_url={server.url},prompt_price=2.5,answer_price=10")  # fmt: skip
        refused = cli("run", *args, "--grader-budget", 0.0001)
        assert refused.code == 2
        assert "--grader-budget: grading would cost up to" in refused.err
        assert server.requests == []
        server.script(error(401))
        failed = cli("run", *args)
        assert failed.code == 1
        assert "refuses the key" in failed.err
        server.script(Reply(completion()))
        assert cli("run", *args, "--grader-budget", 0.1).code == 0
    (path,) = RecordStore(tmp_path).paths()
    report = read_record(path).grader
    assert (report.model, report.failures, report.cost.requests) == ("gpt-4o-2024-08-06", 0, 4)
    monkeypatch.delenv("OPENAI_API_KEY")
    assert cli("verify", path).code == 0
    texts = [f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()]
    assert not [text for text in texts if b"sk-secret" in text]
    assert "0.0052 USD" in cli("show", path).out


def test_a_missing_key_is_reported_before_training(tmp_path, cli, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    outcome = cli("run", "--model", "transformer", "--task", "storyteller", "--grader", "openai",
                "--out", tmp_path)  # fmt: skip
    assert outcome.code == 2
    assert outcome.err.endswith("grader openai needs a key in the environment: OPENAI_API_KEY=…\n")
    assert os.listdir(tmp_path) == []


def test_a_grader_is_prepared_once_a_run_and_before_training(tmp_path, provide):
    events = []

    class Prepared(Length):
        name = "prepared"

        def prepare(self, completions, budget):
            events.append(("prepared", completions, budget))

    class Watch:
        @hookimpl
        def iclbench_run_started(self, spec):
            events.append("started")

    provide("grader", "prepared", Prepared)
    watch = Watch()
    with host().observing(watch, "watch"):
        tell(tmp_path, grader="prepared", grader_budget=2.0)
        tell(tmp_path, grader="prepared", grader_budget=2.0)
    assert events == [("prepared", 4, 2.0), "started"]
