"""A record that would take days is refused, whatever a plugin makes of the interruption."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress

import pytest
from small_runs import TINY

from iclbench import RecordError, RecordStore, run, verify
from iclbench.runs import time_limit as limits
from iclbench.runs import verify as verifying
from iclbench.runs.time_limit import time_limit

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no such timer"
)


def test_a_record_that_takes_too_long_is_refused(tmp_path, monkeypatch):
    run(model="gradient-descent", **TINY, model_args={"steps": 3}, out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    monkeypatch.setattr(limits, "MOST_MINUTES", 1e-3)
    monkeypatch.setattr(verifying, "measure", lambda *_, **__: time.sleep(60))
    with pytest.raises(RecordError, match=r"takes more than 0\.001 minutes.*--trust"):
        verify(path)


def test_the_limit_is_raised_again(monkeypatch):
    monkeypatch.setattr(limits, "AGAIN", 0.01)
    monkeypatch.setattr(limits, "MOST_MINUTES", 1e-4)
    begun = time.monotonic()

    def plugin():
        with time_limit():
            with suppress(RecordError):
                time.sleep(60)
            time.sleep(60)

    with pytest.raises(RecordError, match="more than"):
        plugin()
    assert time.monotonic() - begun < 30


def test_nothing_is_left_after_the_block(monkeypatch):
    monkeypatch.setattr(limits, "MOST_MINUTES", 1e-3)
    before = signal.getsignal(signal.SIGALRM)
    with time_limit():
        pass
    time.sleep(0.1)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_other_threads_have_no_limit(monkeypatch):
    monkeypatch.setattr(limits, "MOST_MINUTES", 1e-4)
    ended = []

    def work():
        with time_limit():
            time.sleep(0.05)
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]


def test_a_timer_of_the_caller_goes_on():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with time_limit():
            pass
        end = time.monotonic() + 10
        while not rung and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert rung == [True]
