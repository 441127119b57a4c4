"""Following a queue: changes, a queue that doesn't answer, and an interruption."""

from __future__ import annotations

import pytest
from fake_queue import FakeQueue

from iclbench import QueuedJob, RunError


@pytest.fixture
def queue(tmp_path):
    return FakeQueue(folder=tmp_path)


def test_map_yields_results_and_failures(queue):
    queue.broken = (1,)
    outcomes = dict(queue.map(len, ["a", "bb", "ccc"], 1))
    assert (outcomes[0], outcomes[2]) == (1, 3)
    assert isinstance(outcomes[1], RunError)
    assert str(outcomes[1]) == "its node burnt"


def test_every_change_is_followed_once(queue):
    ids = queue.submit(len, ["a", "bb"], 1)
    states = [(job.id, job.state) for job in queue.follow(ids)]
    assert states == [("0", "done"), ("1", "waiting"), ("1", "done")]


def test_a_job_of_an_unknown_state_is_refused():
    """It would be neither active nor done, so that others would submit it again."""
    with pytest.raises(RunError, match="job 7: its state is 'runing', not one of waiting, running"):
        QueuedJob("7", {}, "runing")


def refusing(monkeypatch, count):
    """Let the queue give no answer so many times; more may be added to what this returns."""
    refusals, asked = [RunError("no answer")] * count, FakeQueue.queue

    def answer(self):
        if refusals:
            raise refusals.pop()
        return asked(self)

    monkeypatch.setattr(FakeQueue, "queue", answer)
    return refusals


def test_a_queue_that_gives_no_answer_is_asked_again(queue, monkeypatch):
    refusals = refusing(monkeypatch, 3)
    monkeypatch.setattr(FakeQueue, "patience", 3)
    ids = queue.submit(len, ["a"], 1)
    assert [job.state for job in queue.follow(ids)] == ["done"]
    refusals += [RunError("no answer")] * 4
    with pytest.raises(RunError, match="no answer"):
        list(queue.follow(queue.submit(len, ["b"], 1)))


def test_a_queue_is_asked_again_before_jobs_are_submitted(queue, monkeypatch):
    refusals = refusing(monkeypatch, FakeQueue.first_patience)
    assert list(queue.map(len, ["a"], 1)) == [(0, 1)]
    refusals += [RunError("no answer")] * (FakeQueue.first_patience + 1)
    with pytest.raises(RunError, match="no answer"):
        list(queue.map(len, ["b"], 1))
    assert len(queue.queue()) == 1


def test_closing_cancels_what_has_not_ended(queue):
    outcomes = queue.map(len, ["a", "bb", "ccc"], 1)
    next(outcomes)
    outcomes.close()
    queue.held = True
    assert [job.reason for job in queue.queue()] == ["", "it was cancelled", "it was cancelled"]


def test_a_queue_that_cannot_cancel_does_not_hide_an_interruption(queue, monkeypatch):
    def refuse(self, ids):
        raise RunError("the queue does not answer")

    queue.held = True
    monkeypatch.setattr(FakeQueue, "cancel", refuse)
    changes = queue.follow(queue.submit(len, ["a"], 1))
    next(changes)
    with pytest.raises(KeyboardInterrupt) as stopped:
        changes.throw(KeyboardInterrupt())
    (note,) = stopped.value.__notes__
    assert note == "the jobs could not be cancelled, and go on: the queue does not answer"


def test_a_job_that_the_queue_no_longer_lists_has_failed(queue, monkeypatch):
    queue.held = True
    monkeypatch.setattr(FakeQueue, "most_absences", 2)
    ids = queue.submit(len, ["a", "bb"], 1)
    asked, absences = FakeQueue.queue, []

    def lose_first(self):
        jobs = asked(self)
        # Both are there at the first look, and the first returns once.
        absences.append(len(absences) not in {0, 2})
        return jobs[1:] if absences[-1] else jobs

    monkeypatch.setattr(FakeQueue, "queue", lose_first)
    changes = queue.follow(ids)
    assert [next(changes).state for _ in ids] == ["waiting", "waiting"]
    ended = next(changes)
    assert (ended.id, ended.job, ended.state) == (ids[0], "a", "failed")
    assert str(ended.outcome) == "the queue's files no longer list it"
    assert absences == [False, True, False, True, True, True]
    changes.close()


def test_map_ends_though_the_queue_has_lost_its_files(queue, monkeypatch):
    monkeypatch.setattr(FakeQueue, "queue", lambda self: [])
    outcomes = dict(queue.map(len, ["a", "bb", "a"], 1))
    assert {index: str(outcome) for index, outcome in outcomes.items()} == dict.fromkeys(
        range(3), "the queue's files no longer list it"
    )
