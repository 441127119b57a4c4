"""The check of executors: `local` passes, and every broken promise is named."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from fake_queue import FakeQueue

from iclbench import Executor, check_executor
from iclbench.runs.checks import ConformanceError
from iclbench.sweeps import conformance
from iclbench.sweeps.executors.local import Local


class Threads(Executor):
    """Runs jobs in threads of this process."""

    name = "threads"

    def map(self, function, jobs, workers):
        with ThreadPoolExecutor(workers) as pool:
            futures = {pool.submit(function, job): i for i, job in enumerate(jobs)}
            for future in as_completed(futures):
                yield futures[future], future.exception() or future.result()


class Recording(Executor):
    """`local`, with the outcomes of its first `map`."""

    name = "recording"

    def __init__(self):
        self.outcomes = []

    def map(self, function, jobs, workers):
        first = not self.outcomes
        for outcome in Local().map(function, jobs, workers):
            if first:
                self.outcomes.append(outcome)
            yield outcome


class Replaying(Executor):
    """Outcomes of `local` with one promise broken."""

    name = "replaying"

    def __init__(self, outcomes, change):
        self.outcomes, self.change = outcomes, change

    def map(self, function, jobs, workers):
        for index, outcome in self.outcomes:
            yield from self.change(index, outcome)


@pytest.fixture(scope="module")
def outcomes():
    """What `local`, which conforms, answers to the first part of the check."""
    recording = Recording()
    check_executor(recording)
    return recording.outcomes


def with_fields(outcome, **fields):
    return {**outcome, **fields} if isinstance(outcome, dict) else outcome


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda i, outcome: [(i, outcome)] * 2, r"jobs 0 to 9 gave results of \[0, 0, 1"),
        (lambda i, outcome: [(i, outcome)] if i else [], r"jobs 0 to 9 gave results of \[1, 2"),
        (lambda i, outcome: [((i + 3) % 10, outcome)], "a result belongs to another job"),
        (lambda i, outcome: [(i, outcome if isinstance(outcome, dict) else "failed")],
         "a job that ends by error gave 'failed', not an exception"),
        (lambda i, outcome: [(i, with_fields(outcome, value="x"))], "belongs to another job"),
        (lambda i, outcome: [(i, with_fields(outcome, process=["here", 1]))],
         "a process runs two jobs at once"),
        (lambda i, outcome: [(i, with_fields(outcome, process=["here", i], began=0, ended=9))],
         "8 jobs run at once, with 2 workers"),
        (lambda i, outcome: [(i, with_fields(outcome, process=conformance.this_process()))],
         "jobs run in the calling process"),
    ],
)  # fmt: skip
def test_local_conforms_and_a_broken_promise_is_named(outcomes, change, reason):
    with pytest.raises(ConformanceError, match=reason):
        conformance._check_results(Replaying(outcomes, change), 2)


class Strange(Executor):
    """Waits forever, or passes on the exception of a job."""

    name = "strange"

    def __init__(self, ends):
        self.ends = ends

    def map(self, function, jobs, workers):
        yield 0, None
        self.ends()


def test_waiting_forever_for_a_dead_process_is_noticed(monkeypatch):
    monkeypatch.setattr(conformance, "PATIENCE_SECONDS", 0.1)
    ended = threading.Event()
    try:
        with pytest.raises(ConformanceError, match="9 of 10 jobs have no result after a long wait"):
            check_executor(Strange(ended.wait))
    finally:
        ended.set()


def test_an_exception_that_ends_all_jobs_is_noticed():
    with pytest.raises(ConformanceError, match="raises ZeroDivisionError"):
        check_executor(Strange(lambda: 1 / 0))


def test_threads_are_refused():
    with pytest.raises(ConformanceError, match="jobs run in the calling process"):
        check_executor(Threads())


def test_jobs_that_are_killed_at_an_interruption_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(BaseProcess, "terminate", BaseProcess.kill)
    with pytest.raises(ConformanceError, match="ends without SIGTERM"):
        conformance._check_interruption(Local(), 2, tmp_path)


class Continuing(Executor):
    """Starts another job after it has been closed."""

    name = "continuing"

    def map(self, function, jobs, workers):
        folder = Path(jobs[0]["folder"])
        (folder / "1.started").touch()
        try:
            yield 0, None
        finally:
            (folder / "1.saved").touch()
            threading.Timer(0.1, (folder / "2.started").touch).start()


def test_jobs_that_start_after_an_interruption_are_noticed(tmp_path):
    with pytest.raises(ConformanceError, match="starts after the generator has been closed"):
        conformance._check_interruption(Continuing(), 2, tmp_path)


class Forgetful(FakeQueue):
    """Its jobs stay in the queue when they are cancelled, though none runs."""

    held = True

    def map(self, function, jobs, workers):
        folder = Path(jobs[0]["folder"])
        (folder / "1.started").touch()
        try:
            yield 0, None
        finally:
            (folder / "1.saved").touch()


def test_a_queue_that_keeps_cancelled_jobs_is_noticed(tmp_path):
    queue = Forgetful(folder=tmp_path / "jobs")
    queue.submit(len, ["a"], 1)
    with pytest.raises(ConformanceError, match=r"the queue still has the jobs \['0'\]"):
        conformance._check_interruption(queue, 2, tmp_path)


class Blaming(Forgetful):
    """Its jobs count as failed when they are cancelled."""

    def map(self, function, jobs, workers):
        for number in range(len(self.submit(function, jobs, workers))):
            self.change(number, state="failed", reason="it was killed")
        yield from super().map(function, jobs, workers)


def test_a_queue_that_calls_a_cancelled_job_failed_is_noticed(tmp_path):
    queue = Blaming(folder=tmp_path / "jobs")
    with pytest.raises(ConformanceError, match="an interruption cancelled are listed as failed"):
        conformance._check_interruption(queue, 2, tmp_path)


def test_a_queue_whose_jobs_never_end_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(conformance, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(FakeQueue, "held", True)
    with pytest.raises(ConformanceError, match="have not ended after a long wait"):
        conformance._check_queue(FakeQueue(folder=tmp_path), 1)
