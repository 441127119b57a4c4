"""A process has one run at a time."""

from __future__ import annotations

import threading

import pytest
from small_runs import TINY

from iclbench import RecordStore, UsageError, hookimpl, host, run, verify
from iclbench.runs.exclusive import exclusive

REFUSAL = "in the middle of another run; dtype and random generators belong to the process"


def test_a_second_run_in_the_process_is_refused_and_the_next_is_not(tmp_path):
    errors = []

    def second():
        with pytest.raises(UsageError, match=REFUSAL) as caught:
            run(model="zero", **TINY, out=tmp_path)
        errors.append(caught.value)

    with exclusive():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(errors) == 1
    assert not list(tmp_path.rglob("*.json"))
    record = run(model="zero", **TINY, out=tmp_path)
    path = RecordStore(tmp_path).path(record.spec)
    with exclusive(), pytest.raises(UsageError, match=REFUSAL):
        verify(path)
    assert all(check.holds for check in verify(path))


def test_a_run_that_failed_leaves_the_process_free(tmp_path, monkeypatch):
    monkeypatch.setattr("iclbench.runs.run.summarize_run", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(model="zero", **TINY, out=tmp_path)
    with exclusive():
        pass


@pytest.mark.parametrize("hook", ["iclbench_run_started", "iclbench_run_finished"])
def test_an_observer_that_runs_is_dropped_with_the_reason(tmp_path, capsys, hook):
    def nested(spec):
        run(model="averaging", **{**TINY, "dtype": "float64"}, out=tmp_path / "nested")

    observer = type("Nested", (), {hook: staticmethod(hookimpl(nested))})()
    try:
        host().observe(observer, "nested")
        record = run(model="zero", **TINY, out=tmp_path)
    finally:
        host().forget(observer)
        host().problems.clear()
    assert REFUSAL in capsys.readouterr().err
    assert record.metrics["squared_error"].mean > 0
    assert not (tmp_path / "nested" / "least-squares").exists()
