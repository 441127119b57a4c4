"""Trackers follow runs through the run hooks."""

from __future__ import annotations

import itertools
import math

import pytest
from support import TINY

from iclbench import Config, RecordStore, Tracker, UsageError, run, tracking
from iclbench.api.tracker import losses_of
from iclbench.runs.retraining import retrain


class NotesConfig(Config):
    word: str = "none"


class Notes(Tracker):
    """Keeps what it gets; `raises` names a method that fails."""

    name = "notes"
    Config = NotesConfig
    events: list = []
    raises = ""

    def note(self, event, *details):
        self.events.append((event, *details))
        if event == self.raises:
            raise ValueError("boom")

    def start(self, spec, settings):
        self.note("start", spec.id, settings, self.config.word, self.out)

    def log(self, step, values):
        self.note("log", step, values)

    def finish(self, record, summary):
        self.note("finish", record.id, summary)

    def fail(self, error):
        self.note("fail", type(error).__name__)


@pytest.fixture
def notes(provide):
    def add(raises="", name="notes"):
        attributes = {"name": name, "raises": raises, "events": []}
        tracker = type("Other", (Notes,), attributes)
        provide("tracker", name, tracker, plugin=f"{name}-plugin")
        return tracker.events

    return add


def kinds(events):
    """The kinds of events in order; several logs in a row count once."""
    return [kind for kind, _ in itertools.groupby(event[0] for event in events)]


SMALL = {**TINY, "model": "transformer", "model_args": {"layers": 1, "width": 4},
         "recipe_args": {"steps": 3, "batch": 2}}  # fmt: skip


def test_a_tracker_sees_a_run_from_start_to_finish(notes, tmp_path):
    events = notes()
    with tracking("notes", out=tmp_path, args={"notes": {"word": "hello"}}):
        record = run(**SMALL, out=tmp_path)
    first, *steps, last = events
    assert first[:2] == ("start", record.id)
    assert first[2]["model_args.layers"] == 1
    assert first[2]["seeds"] == "[0, 1]"
    assert first[3:] == ("hello", tmp_path)
    assert [event[0] for event in steps] == ["log"] * len(steps)
    assert {event[1] for event in steps} >= set(record.training.curve_steps)
    losses = steps[-1][2]
    assert set(losses) == {"loss/mean", "loss/seed-0", "loss/seed-1"}
    assert losses["loss/seed-1"] == pytest.approx(record.training.curve[-1][1])
    assert last[:2] == ("finish", record.id)
    assert last[2]["squared_error/mean"] == record.metrics["squared_error"].mean
    assert last[2]["floor/squared_error/mean"] == record.floor["squared_error"].mean
    assert last[2]["score"] == record.metrics["squared_error"].digits.mean


def test_a_run_after_the_block_and_an_existing_record_are_not_tracked(notes, tmp_path):
    events = notes()
    with tracking(["notes"], out=tmp_path):
        run(task="least-squares", model="zero", eval_prompts=8, out=tmp_path)
    count = len(events)
    with tracking(["notes"], out=tmp_path):
        run(task="least-squares", model="zero", eval_prompts=8, out=tmp_path)
    run(task="least-squares", model="averaging", eval_prompts=8, out=tmp_path)
    assert count == len(events) == 2


def test_a_repeated_training_is_not_tracked_and_drops_no_tracker(notes, tmp_path, capsys):
    record = run(**SMALL, out=tmp_path)
    events = notes()
    with tracking(["notes"], out=tmp_path):
        assert retrain(RecordStore(tmp_path).path(record.spec)).record.proof.same_bits
        run(**{**SMALL, "seeds": [7]}, out=tmp_path)
    assert kinds(events) == ["start", "log", "finish"]
    assert "dropped" not in capsys.readouterr().err


@pytest.mark.parametrize("method", ["start", "log", "finish"])
def test_a_tracker_that_raises_is_dropped_and_the_other_goes_on(notes, tmp_path, capsys, method):
    broken, sound = notes(method, "broken"), notes()
    with tracking(["broken", "notes"], out=tmp_path):
        record = run(**SMALL, out=tmp_path)
    assert record.training is not None
    assert kinds(sound) == ["start", "log", "finish"]
    # A run that was started is ended, unless its end is what failed.
    expected = {"start": ["start"], "log": ["start", "log", "fail"]}
    assert kinds(broken) == expected.get(method, ["start", "log", "finish"])
    (line,) = [text for text in capsys.readouterr().err.splitlines() if "dropped" in text]
    assert "broken" in line
    assert "boom" in line


def test_a_run_that_fails_ends_its_trackers(notes, tmp_path, monkeypatch):
    events = notes()

    def broken(*args, **options):
        raise MemoryError("no room")

    monkeypatch.setattr("iclbench.runs.run.evaluate_and_record", broken)
    with tracking("notes", out=tmp_path), pytest.raises(MemoryError):
        run(task="least-squares", model="zero", eval_prompts=8, out=tmp_path)
    assert events[-1] == ("fail", "MemoryError")


def test_wrong_names_and_arguments_are_refused(notes, tmp_path):
    notes()
    for names, args, message in [
        ("note", {}, "did you mean 'notes'"),
        ("notes", {"notes": {"wort": 1}}, "did you mean 'word'?"),
        ("notes", {"other": {}}, "not asked for"),
    ]:
        with pytest.raises(UsageError, match=message), tracking(names, out=tmp_path, args=args):
            pass


def test_losses_that_are_not_finite_are_left_out():
    class Spec:
        seeds = (3, 5)

    assert losses_of(Spec, [math.nan, 2.0]) == {"loss/mean": 2.0, "loss/seed-5": 2.0}
    assert losses_of(Spec, [math.nan, math.inf]) == {}


def test_a_tracker_within_itself_follows_a_run_twice(notes, tmp_path):
    events = notes()
    with tracking("notes", out=tmp_path), tracking("notes", out=tmp_path):
        run("zero", **TINY, out=tmp_path)
    assert [event[0] for event in events].count("finish") == 2
