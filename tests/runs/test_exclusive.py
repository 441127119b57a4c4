"""A process has one run at a time, and a training one process."""

from __future__ import annotations

import errno
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
import torch
from small_runs import TINY

from iclbench import RecordStore, RunSpec, UsageError, hookimpl, host, run, verify
from iclbench.api.errors import CheckpointError
from iclbench.runs import run as run_module
from iclbench.runs.exclusive import alone, exclusive, is_trained_elsewhere, lock_of
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.training import checkpoint_path, keep_trained, train, train_or_load
from iclbench.sweeps.tuning.planning import TRIALS_FOLDER, planned_search
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings

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


@contextmanager
def default_device():
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize(
    "mode",
    [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu"), default_device],
    ids=["no_grad", "inference_mode", "autocast", "default device"],
)
def test_modes_that_the_caller_has_switched_on_change_nothing(tmp_path, mode):
    spec = {**TINY, "model": "transformer", "shift": "inputs-half"}
    expected = run(**spec, out=tmp_path / "plain")
    with mode():
        before = torch.is_grad_enabled(), torch.get_default_device()
        record = run(**spec, out=tmp_path / "within")
        assert all(check.holds for check in verify(record.path))
        assert (torch.is_grad_enabled(), torch.get_default_device()) == before
    assert record.main.values == expected.main.values
    assert record.weights_file == expected.weights_file


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
        with host().observing(observer, "nested"):
            record = run(model="zero", **TINY, out=tmp_path)
    finally:
        host().problems.clear()
    assert REFUSAL in capsys.readouterr().err
    assert record.metrics["squared_error"].mean > 0
    assert not (tmp_path / "nested" / "least-squares").exists()


def test_a_training_of_another_process_is_refused_until_that_ends(tmp_path):
    checkpoint = tmp_path / "checkpoints" / "id.safetensors"
    holds = (
        "import sys, time; from pathlib import Path; from iclbench.runs.exclusive import alone\n"
        "with alone(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", holds, str(checkpoint)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        message = f"another process is training this run, see {checkpoint.with_suffix('.lock')}"
        with pytest.raises(CheckpointError, match=message), alone(checkpoint):
            pass
        with alone(checkpoint.with_name("other.safetensors")):
            pass
        process.send_signal(signal.SIGKILL)  # it can't clean up
    with alone(checkpoint):
        assert checkpoint.with_suffix(".lock").exists()
    assert not checkpoint.parent.exists()


def test_a_program_leaves_the_checkpoint_of_a_run_that_another_process_trains_alone(tmp_path):
    requests = [
        RunSpec(model="lsa", **TINY, recipe_args={"learning_rate": r}) for r in (1e-3, 2e-3)
    ]
    plans = [resolve(request) for request in requests]
    theirs, free = (checkpoint_path([plan], tmp_path) for plan in plans)
    with alone(theirs):
        for path in (theirs, free):
            path.write_bytes(b"")
        run_plans(plans, Settings(tmp_path, device="cpu", resume=False))
        assert theirs.exists()
        assert not free.exists()


def test_the_lock_that_a_killed_process_left_keeps_no_checkpoint(tmp_path):
    path = tmp_path / "checkpoints/a.safetensors"
    path.parent.mkdir()
    lock_of(path).touch()
    assert not is_trained_elsewhere(path)
    with alone(path):
        assert is_trained_elsewhere(path)
    assert not lock_of(path).exists()


def test_the_rest_of_a_program_is_not_trained_beside_a_process_that_trains_it(tmp_path):
    requests = [
        RunSpec(model="lsa", **TINY, recipe_args={"learning_rate": r}) for r in (1e-3, 2e-3)
    ]
    kept_plan, other = plans = [resolve(request) for request in requests]
    device = torch.device("cpu")
    (ready,) = train([kept_plan], Settings(tmp_path, device="cpu"), device)
    keep_trained(kept_plan, ready, tmp_path, device)
    with (
        alone(checkpoint_path([other], tmp_path)),
        pytest.raises(CheckpointError, match="another process is training this run"),
    ):
        list(train_or_load(plans, Settings(tmp_path, device="cpu"), device))


def test_a_record_that_another_process_made_meanwhile_is_not_made_again(tmp_path, monkeypatch):
    """It ends between the look for a record and the lock."""
    theirs = run(model="lsa", **TINY, out=tmp_path / "theirs", shift=("noisy",))

    @contextmanager
    def late(checkpoint):
        shutil.copytree(tmp_path / "theirs", tmp_path / "ours", dirs_exist_ok=True)
        with alone(checkpoint):
            yield

    monkeypatch.setattr("iclbench.runs.run.alone", late)
    monkeypatch.setattr("iclbench.runs.run.train_or_load", pytest.fail)
    assert run(model="lsa", **TINY, out=tmp_path / "ours") == theirs


def test_a_record_that_a_process_with_another_lock_made_is_kept(tmp_path, monkeypatch, capsys):
    """It trained the same run alone, so it had another lock."""
    theirs = run(model="lsa", **TINY, out=tmp_path / "theirs")
    evaluated = run_module.evaluate_and_record

    def late(*args):
        shutil.copytree(tmp_path / "theirs", tmp_path / "ours", dirs_exist_ok=True)
        return evaluated(*args)

    monkeypatch.setattr(run_module, "evaluate_and_record", late)
    assert run(model="lsa", **TINY, out=tmp_path / "ours").created == theirs.created
    assert "another process has written its record meanwhile" in capsys.readouterr().err
    assert RecordStore(tmp_path / "ours").find(theirs.spec).digest == theirs.digest
    again = run(model="lsa", **TINY, out=tmp_path / "ours", force=True)
    assert again.digest != theirs.digest


def test_a_search_beside_itself_is_refused(tmp_path):
    """It would miss the trials that the other process trains, and choose among fewer."""
    plan = resolve(RunSpec(model="lsa", **TINY))
    # A search for other seeds has the same trials.
    other = resolve(RunSpec(model="lsa", **{**TINY, "seeds": 3}))
    search = planned_search(other, Settings(tmp_path), SearchSettings(trials=2))
    path = tmp_path / TRIALS_FOLDER / f"search-{search.key}"
    with (
        alone(path),
        pytest.raises(CheckpointError, match="another process is running this search"),
    ):
        tune(plan, Settings(tmp_path))
    assert not list(tmp_path.rglob("*.json"))


def test_a_file_system_without_locks_is_said_and_no_killed_process_blocks(
    tmp_path, monkeypatch, capsys
):
    """filelock would write a marker there, which outlives its process."""
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_args):
        raise OSError(errno.ENOSYS, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    checkpoint = tmp_path / "a.safetensors"
    killed = alone(checkpoint)
    killed.__enter__()
    with alone(checkpoint):
        assert "can't be locked ([Errno 38] no locks here); don't start" in capsys.readouterr().err
