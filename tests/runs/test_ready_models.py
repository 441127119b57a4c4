"""What was trained for a run whose evaluation failed is evaluated, not trained again."""

from __future__ import annotations

import re
import signal

import pytest
from small_runs import TINY

from iclbench import RecordError, RecordStore, RunSpec
from iclbench.api.errors import Interrupted
from iclbench.devices import environment
from iclbench.runs import ready_models
from iclbench.runs import run as run_module
from iclbench.runs import training as trainings
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.training import checkpoint_path
from iclbench.training.checkpoints import Checkpoint
from iclbench.training.loop import Training
from iclbench.training.platforms import MOVED


def plans_of(*rates):
    specs = [{**TINY, "recipe_args": {"learning_rate": rate}} for rate in rates]
    return [resolve(RunSpec(model="baseconv", **spec)) for spec in specs]


@pytest.fixture
def failed(tmp_path, monkeypatch):
    """Plans that were trained together; the evaluation of the second one failed."""
    plans = plans_of(1e-3, 2e-3)
    evaluated = run_module.evaluate_and_record

    def failing(plan, *args):
        if plan is plans[1]:
            raise RuntimeError("no luck")
        return evaluated(plan, *args)

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "evaluate_and_record", failing)
        with pytest.raises(RuntimeError, match="no luck"):
            run_plans(plans, Settings(tmp_path, device="cpu"))
    assert files(tmp_path) == [checkpoint_path([plans[1]], tmp_path)]
    return plans


def files(out):
    return list((out / "checkpoints").glob("*"))


@pytest.mark.parametrize("alone", [True, False])
def test_its_record_is_that_of_a_run_without_a_failure(
    tmp_path, monkeypatch, capsys, failed, alone
):
    monkeypatch.setattr(Training, "advance", pytest.fail)
    *_, record = run_plans(failed[1:] if alone else failed, Settings(tmp_path, device="cpu"))
    assert "baseconv on least-squares: trained before, see " in capsys.readouterr().err
    assert files(tmp_path) == []
    monkeypatch.undo()
    _, straight = run_plans(plans_of(1e-3, 2e-3), Settings(tmp_path / "straight", device="cpu"))
    assert record.weights_file == straight.weights_file
    assert record.metrics == straight.metrics
    assert record.training.curve == straight.training.curve
    assert record.training.replicas == straight.training.replicas == 4
    assert record.operations == straight.operations
    assert record.validation_curve.mean == straight.validation_curve.mean


def test_a_record_made_on_another_platform_says_so(tmp_path, monkeypatch, failed):
    def elsewhere(device):
        return environment(device).model_copy(update={"threads": 64})

    monkeypatch.setattr(ready_models, "environment", elsewhere)
    (record,) = run_plans(failed[1:], Settings(tmp_path, device="cpu"))
    assert record.training.note == f"{MOVED}: other threads"


def test_it_is_not_trained_beside_others(tmp_path, failed):
    others = plans_of(3e-3, 4e-3)
    *more, record = run_plans([*others, failed[1]], Settings(tmp_path, device="cpu"))
    assert [r.training.replicas for r in (*more, record)] == [4, 4, 4]
    assert files(tmp_path) == []


def test_it_stays_when_its_evaluation_fails_again(tmp_path, monkeypatch, failed):
    def failing(*_):
        raise RuntimeError("no luck again")

    monkeypatch.setattr(run_module, "evaluate_and_record", failing)
    before = files(tmp_path)
    for plans in (failed[1:], [*plans_of(3e-3), failed[1]]):
        with pytest.raises(RuntimeError, match="no luck again"):
            run_plans(plans, Settings(tmp_path, device="cpu"))
        assert set(before) <= set(files(tmp_path))


def test_models_of_other_code_are_refused_and_beside_others_trained_again(
    tmp_path, monkeypatch, capsys, failed
):
    monkeypatch.setattr(trainings, "training_code", lambda plans: {"torch": "other"})
    with pytest.raises(RecordError, match=r"made by other code of .*torch; delete it to start"):
        run_plans(failed[1:], Settings(tmp_path, device="cpu"))
    _, record = run_plans([*plans_of(3e-3), failed[1]], Settings(tmp_path, device="cpu"))
    told = capsys.readouterr().err
    assert "baseconv on least-squares is trained again: checkpoint " in told
    assert re.search(r"was made by other code of .*torch\n", told)
    assert files(tmp_path) == []
    assert record.id == failed[1].spec.id


def test_a_damaged_file_of_one_run_does_not_stop_others(tmp_path, capsys, failed):
    files(tmp_path)[0].write_bytes(b"")
    run_plans([*plans_of(3e-3), failed[1]], Settings(tmp_path, device="cpu"))
    assert "can't be read" in capsys.readouterr().err
    assert files(tmp_path) == []


def test_a_group_of_which_one_was_kept_continues_from_its_own_checkpoint(tmp_path, monkeypatch):
    """The first one's evaluation fails, and that of the second is interrupted."""
    plans = sorted(plans_of(1e-3, 2e-3), key=lambda p: p.spec.id)

    def failing(plan, *args):
        raise RuntimeError("no luck") if plan is plans[0] else KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "evaluate_and_record", failing)
        with pytest.raises(KeyboardInterrupt):
            run_plans(plans, Settings(tmp_path, device="cpu"))
    assert len(files(tmp_path)) == 2
    with monkeypatch.context() as patch:
        patch.setattr(Training, "advance", pytest.fail)
        records = run_plans(plans, Settings(tmp_path, device="cpu"))
    assert [record.training.replicas for record in records] == [4, 4]
    assert files(tmp_path) == []


def test_a_process_killed_between_two_records_loses_no_training(tmp_path, monkeypatch):
    class KilledError(BaseException):
        """Nothing handles it, as nothing handles a kill."""

    plans, write = plans_of(1e-3, 2e-3), RecordStore.write

    def killed(store, record):
        if any(tmp_path.rglob("baseconv-*.json")):
            raise KilledError
        return write(store, record)

    with monkeypatch.context() as patch:
        patch.setattr(RecordStore, "write", killed)
        patch.setattr(run_module, "remove_checkpoints", pytest.fail)
        with pytest.raises(KilledError):
            run_plans(plans, Settings(tmp_path, device="cpu"))
    monkeypatch.setattr(Training, "advance", pytest.fail)
    assert len(run_plans(plans, Settings(tmp_path, device="cpu"))) == 2


def test_other_records_are_written_where_nothing_can_be_kept(tmp_path, monkeypatch, capsys):
    plans, evaluated = plans_of(1e-3, 2e-3), run_module.evaluate_and_record

    def failing(plan, *args):
        if plan is plans[0]:
            raise RuntimeError("no luck")
        return evaluated(plan, *args)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_module, "evaluate_and_record", failing)
    monkeypatch.setattr(trainings, "keep", full)
    with pytest.raises(RuntimeError, match="no luck"):
        run_plans(plans, Settings(tmp_path, device="cpu"))
    assert "can't be written: No space left on device" in capsys.readouterr().err
    assert files(tmp_path) == [checkpoint_path(plans, tmp_path)]
    assert RecordStore(tmp_path).find(plans[1].spec) is not None


def test_others_are_trained_before_it_is_evaluated(tmp_path, monkeypatch, failed):
    done = []

    def interrupt(self):
        done.append("trained")
        raise KeyboardInterrupt

    monkeypatch.setattr(Training, "advance", interrupt)
    monkeypatch.setattr(run_module, "evaluate_and_record", lambda *_: done.append("evaluated"))
    with pytest.raises(KeyboardInterrupt):
        run_plans([failed[1], *plans_of(3e-3, 4e-3)], Settings(tmp_path, device="cpu"))
    assert done == ["trained"]


def test_without_resuming_it_is_trained_again(tmp_path, monkeypatch, failed):
    class CutError(Exception):
        pass

    def cut(self):
        raise CutError

    monkeypatch.setattr(Training, "advance", cut)
    with pytest.raises(CutError):
        run_plans(failed, Settings(tmp_path, device="cpu", resume=False))


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), SystemExit(3)])
def test_what_has_no_record_for_any_reason_is_kept(tmp_path, monkeypatch, error):
    """Its record can't be written, or a plugin ends the process while it is evaluated."""
    plans = plans_of(1e-3, 2e-3)

    def failing(function, when):
        def called(first, *args):
            if when(first, *args):
                raise error
            return function(first, *args)

        return called

    def is_second(_, record):
        return record.id == plans[1].spec.id

    with monkeypatch.context() as patch:
        if isinstance(error, SystemExit):
            evaluated = failing(run_module.evaluate_and_record, lambda plan, *_: plan is plans[1])
            patch.setattr(run_module, "evaluate_and_record", evaluated)
        else:
            patch.setattr(RecordStore, "write", failing(RecordStore.write, is_second))
        with pytest.raises(type(error)):
            run_plans(plans, Settings(tmp_path, device="cpu"))
    monkeypatch.setattr(Training, "advance", pytest.fail)
    records = run_plans(plans, Settings(tmp_path, device="cpu"))
    assert [record.training.replicas for record in records] == [4, 4]
    assert files(tmp_path) == []


def test_a_signal_while_records_are_written_leaves_all_of_them(tmp_path, monkeypatch):
    plans, write = plans_of(1e-3, 2e-3), RecordStore.write

    def interrupted(self, record):
        path = write(self, record)
        if record.id == min(plan.spec.id for plan in plans):  # the first one that is written
            signal.raise_signal(signal.SIGINT)
        return path

    monkeypatch.setattr(RecordStore, "write", interrupted)
    with pytest.raises(Interrupted, match="stopped after its records were written"):
        run_plans(plans, Settings(tmp_path, device="cpu"))
    assert all(RecordStore(tmp_path).find(plan.spec) for plan in plans)
    assert files(tmp_path) == []


def test_models_of_another_device_are_refused(tmp_path, monkeypatch, failed):
    (path,) = files(tmp_path)
    checkpoint = Checkpoint.load(path)
    checkpoint.values["kept"]["device"] = "cuda"
    checkpoint.save(path)
    with pytest.raises(RecordError, match="was made on another device; delete it"):
        run_plans(failed[1:], Settings(tmp_path, device="cpu"))


def test_a_file_that_the_only_one_to_train_cannot_use_is_refused(tmp_path, monkeypatch, failed):
    """It has a file of its own, in the place of its checkpoint."""
    own, (kept,) = files(tmp_path)[0], plans_of(3e-3)
    own.rename(tmp_path / "kept")

    def failing(*_):
        raise RuntimeError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "evaluate_and_record", failing)
        with pytest.raises(RuntimeError):
            run_plans([kept], Settings(tmp_path, device="cpu"))
    own.write_bytes(b"")
    with pytest.raises(RecordError, match="can't be read"):
        run_plans([kept, failed[1]], Settings(tmp_path, device="cpu"))
