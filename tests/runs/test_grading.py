"""Graders as a hook: what a task gives them, what records keep, and what verify makes of it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re

import numpy as np
import pytest
import torch
from fake_openai import Reply, completion, error, serving
from pydantic import Field

from iclbench import (
    Completion,
    Config,
    GradedTask,
    Grader,
    RecordError,
    RecordStore,
    RunError,
    RunSpec,
    UsageError,
    hookimpl,
    leaderboard,
    run,
    verify,
)
from iclbench.api.record import GraderReport
from iclbench.api.task import Primary
from iclbench.leaderboards.tables import render
from iclbench.plugins import host
from iclbench.runs.grading import Grading, RecordedGrader
from iclbench.runs.statistics import graded, summarize
from iclbench.runs.store import read_record
from iclbench_least_squares.fixed import LeastSquares


class Storyteller(LeastSquares, GradedTask):
    """Least squares whose answers are told as endings, the first four of them."""

    name = "storyteller"

    def completions(self, models, prompts):
        return 4 * models

    def evaluate(self, model, batch, context):
        found = super().evaluate(model, batch, context)
        if context.grader is not None:
            answers = model(batch.prompt)[:4, 0, 0].tolist()
            stories = [Completion(f"Story {i}.", f"It was {y:.3f}.") for i, y in enumerate(answers)]
            for part in (stories[:1], stories[1:]):
                for name, values in context.grader.grade(part, context.folder).items():
                    old = found.get(f"grade_{name}", torch.zeros(0, dtype=torch.float64))
                    new = torch.tensor(values, dtype=torch.float64)
                    found[f"grade_{name}"] = torch.cat([old, new])
        return found


class Ranked(Storyteller):
    """The same, ranked by a grade."""

    name = "ranked"

    @property
    def primary(self):
        return Primary("grade_length", better="higher", statistic="mean", scale="linear")


class Forgetful(LeastSquares, GradedTask):
    """A graded task that gives its grader nothing."""

    name = "forgetful"


class LengthConfig(Config):
    factor: float = Field(1.0, description="of each length")
    speed: int = Field(1, description="changes no score")
    fail: int | None = Field(None, description="the story that fails")


class Length(Grader):
    name = "length"
    Config = LengthConfig
    operational = frozenset({"speed"})
    asked = 0

    def grade(self, completions, folder):
        assert folder is None or folder.name == "graders"
        type(self).asked += len(completions)
        failing = f"Story {self.config.fail}."
        return {
            "length": [
                math.nan if c.beginning == failing else self.config.factor * len(c.ending)
                for c in completions
            ]
        }

    def report(self):
        return GraderReport(name=self.name, model="a ruler")


class Paid(Length):
    name = "paid"
    paid = True

    def raw(self, completion):
        return {"said": len(completion.ending)}

    def read(self, raw):
        return {"length": float(raw["said"])}


@pytest.fixture(autouse=True)
def _provided(provide):
    for task in (Storyteller, Ranked, Forgetful):
        provide("task", task.name, task)
    for grader in (Length, Paid):
        provide("grader", grader.name, grader)


TINY = {
    "task_args": {"dim": 2, "examples": 4},
    "eval_prompts": 16,
    "seeds": 2,
    "recipe": "smoke",
}


def tell(out, model="averaging", task="storyteller", grader="length", **more):
    return run(model=model, task=task, grader=grader, out=out, **{**TINY, **more})


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# Records


def test_a_record_names_the_grader_and_keeps_every_ending(tmp_path):
    record = tell(tmp_path, grader_args={"factor": 2})
    assert record.metrics["grade_length"].n == 4
    assert record.metrics["squared_error"].n == 16
    report = record.grader
    assert (report.name, report.model, report.completions, report.failures) == (
        "length", "a ruler", 4, 0,
    )  # fmt: skip
    path = RecordStore(tmp_path).path(record.spec)
    lines = read_lines(path.parent / report.answers.file)
    assert [line["beginning"] for line in lines] == [f"Story {i}." for i in range(4)]
    grades = [line["scores"]["length"] for line in lines]
    assert grades == [2.0 * len(line["ending"]) for line in lines]
    assert record.metrics["grade_length"].mean == pytest.approx(np.mean(grades))
    assert "test-plugin" in {plugin.name for plugin in record.plugins}
    assert read_record(path) == record
    assert all(check.holds for check in verify(path))


def test_the_files_of_a_record_that_is_replaced_go(tmp_path):
    first = tell(tmp_path, grader_args={"fail": 1})
    second = tell(tmp_path, grader_args={"fail": 1}, force=True)
    assert first.grader.answers == second.grader.answers
    folder = RecordStore(tmp_path).path(first.spec).parent
    (folder / f"averaging-{first.id}.01234567.answers.jsonl").write_text("old")
    tell(tmp_path, grader_args={"fail": 1}, force=True)
    assert [file.name for file in folder.glob("*.jsonl")] == [first.grader.answers.file]


def test_seeds_are_graded_each(tmp_path):
    record = tell(tmp_path, model="transformer", model_args={"layers": 1, "width": 4},
                  recipe_args={"steps": 2, "batch": 2})  # fmt: skip
    assert record.grader.completions == 8
    each = [seed.metrics["grade_length"].mean for seed in record.seeds]
    assert record.metrics["grade_length"].mean == pytest.approx(np.mean(each))
    assert all(check.holds for check in verify(RecordStore(tmp_path).path(record.spec)))


def test_a_grade_that_failed_is_left_out_and_counted(tmp_path, cli):
    whole = tell(tmp_path)
    record = tell(tmp_path, grader_args={"fail": 2})
    assert (record.grader.failures, record.grader.completions) == (1, 4)
    found = record.metrics["grade_length"]
    assert found.n == 3
    assert found.mean is not None
    assert whole.metrics["grade_length"].n == 4
    path = RecordStore(tmp_path).path(record.spec)
    assert all(check.holds for check in verify(path))
    shown = cli("show", path).out
    assert "graded by length · a ruler · 1 of 4 endings failed" in shown


def test_statistics_leave_out_prompts_that_failed_for_a_seed_and_for_grades_alone():
    values = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]])
    assert summarize(graded("grade_plot", values)).mean == 2.5
    assert summarize(graded("error", values)).mean is None
    nothing = summarize(graded("grade_plot", np.full((1, 3), np.nan)))
    assert (nothing.n, nothing.mean, nothing.low) == (0, None, None)


def test_a_grader_that_failed_everywhere_leaves_no_number(tmp_path):
    class Never(Length):
        name = "length"

        def grade(self, completions, folder):
            return {"length": [math.nan] * len(completions)}

    grading = Grading(Never(LengthConfig()))
    assert all(map(math.isnan, grading.grade([Completion("a", "b")], None)["length"]))
    assert grading.report().failures == 1


# What is asked for


def test_ids_of_runs_without_a_grader_are_as_they_were():
    spec = RunSpec(model="zero", task="least-squares")
    assert not [name for name in spec.model_dump() if name.startswith("grader")]


def test_what_changes_no_score_changes_no_id(tmp_path):
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
        ({"grader_args": {"facter": 1}}, "unknown field 'facter'; did you mean factor"),
        ({"grader": None, "grader_args": {"factor": 1}}, "--grader-args needs --grader"),
        ({"grader": None, "grader_budget": 1.0}, "--grader-budget needs --grader"),
        ({"grader_budget": 0.0}, "grader_budget"),
        ({"task": "least-squares"}, "least-squares has nothing to grade"),
    ],
)
def test_what_can_not_be_graded_is_refused(tmp_path, more, message):
    with pytest.raises(UsageError, match=message):
        tell(tmp_path, **more)
    assert not list(tmp_path.rglob("*.json*"))


def test_a_task_that_gives_its_grader_nothing_is_an_error(tmp_path):
    with pytest.raises(RunError, match="gave grader length nothing to grade"):
        tell(tmp_path, task="forgetful")


BROKEN = {
    "none": ({}, "gave no scores"),
    "too few": ({"plot": [1.0]}, "1 plot of 2 completions"),
    "infinite": ({"plot": [1.0, math.inf]}, "plot is infinite"),
    "name": ({"The Plot": [1.0, 2.0]}, "'The Plot' is no name"),
}


@pytest.mark.parametrize(("scores", "message"), BROKEN.values(), ids=BROKEN)
def test_a_grader_that_breaks_its_promise_is_caught(scores, message):
    class Odd(Length):
        def grade(self, completions, folder):
            return scores

    with pytest.raises(RunError, match=message):
        Grading(Odd(LengthConfig())).grade([Completion("a", "b")] * 2, None)


def test_the_command_line_runs_lists_and_describes_it(tmp_path, cli):
    args = ("--model", "averaging", "--task", "storyteller", "--eval-prompts", 16)
    found = cli("run", *args, "--grader", "length", "--grader-args", "factor=2,speed=3",
                "--grader-budget", 0.5, "--out", tmp_path)  # fmt: skip
    assert found.code == 0, found.err
    (path,) = RecordStore(tmp_path).paths()
    record = read_record(path)
    assert record.spec.grader_args == {"factor": 2.0, "fail": None}
    assert "--grader length --grader-args factor=2,speed=3 --grader-budget 0.5" in record.command
    assert "length" in cli("ls", "graders").out
    shown = cli("describe", "length").out
    assert shown.startswith("grader length, of test-plugin")
    assert "factor (float) = 1.0  of each length" in shown


def test_a_dry_run_says_what_is_graded_and_what_it_costs_at_least(cli, tmp_path):
    args = ("run", "--model", "zero", "--task", "storyteller", "--out", tmp_path, "--dry-run")
    assert "grade about 4 endings by length, free" in cli(*args, "--grader", "length").out
    assert re.search(
        r"4 endings by openai, from 0\.00\d\d USD on", cli(*args, "--grader", "openai").out
    )
    other = ("--grader", "openai", "--grader-args", "model=mine")
    assert "by openai, at a cost that is not known" in cli(*args, *other).out


def test_boards_by_grade_hold_one_grader_each(tmp_path):
    tell(tmp_path, task="ranked")
    tell(tmp_path, task="ranked", model="zero", grader_args={"fail": None})
    tell(tmp_path, task="ranked", model="zero", grader_args={"factor": 2})
    sizes = sorted(len(board.records) for board in leaderboard(tmp_path))
    assert sizes == [1, 2]
    assert all("graded by length a ruler" in render(board) for board in leaderboard(tmp_path))


def test_a_failed_grade_is_left_out_of_a_comparison(tmp_path):
    tell(tmp_path, task="ranked", grader_args={"fail": 1})
    tell(tmp_path, task="ranked", model="zero", grader_args={"fail": 1})
    (board,) = leaderboard(tmp_path)
    # Both endings of every story are of the same length but for a minus sign.
    assert set(board.rows["rank"]) <= {"", "1=", "1", "2"}
    assert not board.rows["mean"].isin([math.inf]).any()


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
    host().observe(watch, "watch")
    try:
        with pytest.raises(RunError, match="out of ink"):
            tell(tmp_path, model="transformer", grader="fails", **small)
        trained = watch.steps
        assert trained > 0
        monkeypatch.setattr(Fails, "failing", False)
        record = tell(tmp_path, model="transformer", grader="fails", **small)
    finally:
        host().forget(watch)
    assert watch.steps == trained
    assert record.grader.completions == 8


# Verifying a paid grader


@pytest.fixture
def paid(tmp_path):
    record = tell(tmp_path, grader="paid")
    return RecordStore(tmp_path).path(record.spec)


def test_verify_asks_a_paid_grader_nothing(paid):
    before = Paid.asked
    checks = {check.name: check for check in verify(paid)}
    assert Paid.asked == before
    assert checks["grade_length mean"].holds
    written = checks["graded endings, written again"]
    assert (written.recorded, written.measured, written.holds) == (4, 4, True)


def reseal(path, change, **report):
    """The record with another file of answers, and everything about it consistent."""
    record = read_record(path)
    place = path.parent / record.grader.answers.file
    lines = read_lines(place)
    data = "".join(json.dumps(change(line)) + "\n" for line in lines).encode()
    place.write_bytes(data)
    answers = record.grader.answers.model_copy(update={"sha256": hashlib.sha256(data).hexdigest()})
    grader = record.grader.model_copy(update={"answers": answers, **report})
    path.write_text(record.model_copy(update={"grader": grader}).sealed().model_dump_json())


def test_answers_that_give_other_grades_are_noticed(paid):
    reseal(paid, lambda line: {**line, "answer": {"said": 9}})
    assert "grade_length mean" in {check.name for check in verify(paid) if not check.holds}


def test_grades_of_other_endings_are_noticed(paid):
    reseal(paid, lambda line: {**line, "ending": line["ending"] + "!"})
    failing = [check for check in verify(paid) if not check.holds]
    assert [(check.name, check.measured) for check in failing] == [
        ("graded endings, written again", 0)
    ]


def test_damaged_answers_are_an_error(paid):
    record = read_record(paid)
    place = paid.parent / record.grader.answers.file
    whole = place.read_bytes()
    place.write_bytes(whole + b"\n")
    with pytest.raises(RecordError, match="SHA-256"):
        verify(paid)
    place.write_bytes(whole)
    reseal(paid, lambda line: {"scores": line["scores"]})
    with pytest.raises(RecordError, match="raw answers is damaged"):
        verify(paid)
    with pytest.raises(RecordError, match="fewer"):
        RecordedGrader(Paid(LengthConfig()), b"").grade([Completion("a", "b")], None)


# The whole way, with the openai grader


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


def test_a_key_that_is_missing_is_said_before_anything_is_trained(tmp_path, cli, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = cli("run", "--model", "transformer", "--task", "storyteller", "--grader", "openai",
                "--out", tmp_path)  # fmt: skip
    assert found.code == 2
    assert found.err.endswith("grader openai needs a key in the environment: OPENAI_API_KEY=…\n")
    assert os.listdir(tmp_path) == []
