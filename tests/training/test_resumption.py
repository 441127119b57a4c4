"""A training that was killed or interrupted continues to the same bits."""

from __future__ import annotations

import math
import signal
import sys

import pytest
import torch
from small import ADAPTIVE, CutError, Noisy, Small, same, trained, training

from iclbench import RecordError
from iclbench.api.errors import Interrupted
from iclbench.training.checkpoints import Checkpoint
from iclbench.training.loop import Training
from iclbench.training.platforms import moved_names
from iclbench.training.resumption import Resumption


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "RAdam", "pytorch_optimizer.SOAP"])
@pytest.mark.parametrize("cls", [Small, Noisy])
def test_killed_training_continues_to_the_same_bits(tmp_path, optimizer, cls):
    if "." in optimizer:
        pytest.importorskip(optimizer.partition(".")[0])
    straight = trained([1, 2], cls=cls, optimizer=optimizer)
    path = tmp_path / "c.safetensors"

    def cut(step, loss):
        if step == 20:
            raise CutError

    with pytest.raises(CutError):
        trained([1, 2], cls=cls, optimizer=optimizer, observer=cut,
                resumption=Resumption(path, every_seconds=0))  # fmt: skip
    assert Checkpoint.load(path).values["step"] == 15
    resumed = training([1, 2], cls=cls, optimizer=optimizer)
    result = resumed.run(Resumption(path), lambda step, loss: None)
    assert same(straight, result)
    assert straight.curve == result.curve
    assert straight.curve_steps == result.curve_steps


@pytest.mark.parametrize("code", [{}, {"program": "leading", "threads": 64}])
def test_a_training_that_went_on_elsewhere_says_so(tmp_path, code):
    """Its bits can't be had again, so that who trains it again compares roughly."""
    path = tmp_path / "c.safetensors"

    def cut_at(at):
        def observe(step, loss):
            if step == at:
                raise CutError

        return observe

    first = training([1, 2])
    first.platform |= code
    with pytest.raises(CutError):
        first.run(Resumption(path, every_seconds=0), cut_at(10))
    second = training([1, 2])
    second_code = {"processor": "another"} if code else {}
    second.platform |= second_code
    with pytest.raises(CutError):
        second.run(Resumption(path, every_seconds=0), cut_at(20))
    result = training([1, 2]).run(Resumption(path), lambda step, loss: None)
    assert sorted(moved_names(result.note)) == sorted(second_code | code)


def test_no_resume_starts_over(tmp_path):
    path = tmp_path / "c.safetensors"
    trained([1], resumption=Resumption(path, every_seconds=0))
    again = trained([1], resumption=Resumption(path, resume=False))
    assert again.curve_steps[0] == 5


@pytest.mark.parametrize("damage", ["truncated", "other seeds", "not safetensors", "other code"])
def test_unsuitable_checkpoint_is_refused(tmp_path, damage):
    path = tmp_path / "c.safetensors"
    trained([1, 2], resumption=Resumption(path, every_seconds=0, code={"plugin": "one"}))
    seeds = [1, 2]
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-10])
    elif damage == "other seeds":
        seeds = [1, 3]
    elif damage == "not safetensors":
        path.write_text("nonsense")
    code, reason = {"plugin": "one"}, ""
    if damage == "other code":
        code, reason = {"plugin": "other", "new": "1"}, "made by other code of new, plugin"
    with pytest.raises(RecordError, match=f"{reason}; delete it to start afresh"):
        trained(seeds, resumption=Resumption(path, code=code))


def test_checkpoint_between_two_points_of_the_curve_is_resumed(tmp_path):
    """With a point every 500 steps and a kill in between, the resumed curve is the same."""
    options = {"steps": 50_000, "chunk": 50}
    path = tmp_path / "c.safetensors"

    class Stop(Training):
        def advance(self):
            if self.step == 600:
                raise CutError
            return super().advance()

    cut = training([1], **options)
    cut.__class__ = Stop
    with pytest.raises(CutError):
        cut.run(Resumption(path, every_seconds=0), lambda step, loss: None)
    saved = Checkpoint.load(path).values
    curve = saved["curve"]
    assert (saved["step"], curve["steps"], curve["window"][1]) == (600, [500], 100)
    straight, resumed = training([1], **options), training([1], **options)
    Resumption(path).restore(resumed)
    for run in (straight, resumed):
        run.recipe = run.recipe.model_copy(update={"steps": 1000})
    for run in (straight, resumed):
        while run.step < 1000:
            run.curve.add(run.advance(), run.step, last=False)
    assert straight.curve.losses == resumed.curve.losses
    assert straight.curve.steps == [500, 1000]


def test_killed_adaptive_training_continues_to_the_same_bits(tmp_path):
    straight = trained([1, 2], **ADAPTIVE)
    path = tmp_path / "c.safetensors"

    def cut(step, loss):
        if step == 21:
            raise CutError

    with pytest.raises(CutError):
        trained([1, 2], **ADAPTIVE, observer=cut, resumption=Resumption(path, every_seconds=0))
    result = trained([1, 2], **ADAPTIVE, resumption=Resumption(path))
    assert same(straight, result)
    assert straight.curve == result.curve


def test_a_resumed_training_measures_the_same_gradients(tmp_path):
    def cut(step, loss):
        if step >= 10:
            raise CutError

    path = tmp_path / "c.safetensors"
    straight, killed, resumed = (training([1, 2], **ADAPTIVE) for _ in range(3))
    straight.run(None, lambda step, loss: None)
    with pytest.raises(CutError):
        killed.run(Resumption(path, every_seconds=0), cut)
    resumed.run(Resumption(path), lambda step, loss: None)
    assert torch.equal(resumed.adaptive.cosine, straight.adaptive.cosine)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_a_checkpoint_of_any_age_and_the_training_continues_to_the_same_bits(
    tmp_path, number
):
    straight = trained([1, 2])
    path = tmp_path / "c.safetensors"

    def interrupt(step, loss):
        if step == 20:
            signal.raise_signal(number)

    with pytest.raises(Interrupted, match=r"^saved at step 20 of 30$") as caught:
        trained([1, 2], observer=interrupt, resumption=Resumption(path, every_seconds=math.inf))
    assert caught.value.signal_number == number
    resumed = trained([1, 2], resumption=Resumption(path))
    assert same(straight, resumed)
    assert straight.curve == resumed.curve


def test_an_interrupted_training_without_a_checkpoint_says_so():
    def interrupt(step, loss):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match=r"^stopped without a checkpoint at step 5 of 30$"):
        trained([1], observer=interrupt)


def test_an_optimizer_whose_state_cannot_be_had_ends_no_training(tmp_path, monkeypatch, capsys):
    path = tmp_path / "c.safetensors"

    def fail(self):
        raise RuntimeError("no state\nat all")

    def late(step, loss):
        if step == 20:
            monkeypatch.setattr(torch.optim.RAdam, "state_dict", fail)
        if step == 25:
            signal.raise_signal(signal.SIGINT)

    kept = r"^stopped, with the last checkpoint kept, at step 25 of 30$"
    with pytest.raises(Interrupted, match=kept):
        trained([1], optimizer="RAdam", observer=late, resumption=Resumption(path, every_seconds=0))
    assert Checkpoint.load(path).values["step"] == 15
    assert capsys.readouterr().err.count("RuntimeError: no state; training goes on") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_checkpoint_that_cannot_be_written_ends_no_training(tmp_path, capsys):
    """A real limit on the size of files, which is lifted, set and lifted again."""
    import resource

    straight = trained([1, 2])
    path = tmp_path / "c.safetensors"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    steps_in_file = []

    def limit(step, loss):
        full = step in (5, 10, 20)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100 if full else soft, hard))
        if path.exists():
            steps_in_file.append(Checkpoint.load(path).values["step"])
        if step == 25:
            raise CutError

    try:
        with pytest.raises(CutError):
            trained([1, 2], observer=limit, resumption=Resumption(path, every_seconds=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    # The observer comes before the checkpoint of its step; at 20 that of step 15 stays.
    assert steps_in_file == [15, 15]
    lines = capsys.readouterr().err.splitlines()
    assert [line.count("can't be written: File too large; training goes on") for line in lines] == [
        1, 1
    ]  # fmt: skip
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    resumed = trained([1, 2], resumption=Resumption(path))
    assert same(straight, resumed)
    assert straight.curve == resumed.curve


def test_a_missing_folder_for_checkpoints_ends_no_training(tmp_path, capsys):
    (tmp_path / "file").write_text("no folder")
    path = tmp_path / "file" / "c.safetensors"
    result = trained([1], resumption=Resumption(path, every_seconds=0))
    assert result.steps == 30
    assert capsys.readouterr().err.count("training goes on") == 1


def test_a_state_that_json_cannot_hold_stops_no_training(tmp_path, monkeypatch, capsys):
    path = tmp_path / "c.safetensors"
    state = Training.state

    def unwritable(self):
        tensors, values = state(self)
        return tensors, {**values, "dtype": torch.bfloat16}

    monkeypatch.setattr(Training, "state", unwritable)
    result = trained([1], resumption=Resumption(path, every_seconds=0))
    assert result.steps == trained([1]).steps
    assert not path.exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert "is not JSON serializable; training goes on" in line


def test_a_signal_while_the_last_checkpoint_is_written_is_raised(tmp_path):
    class Slow(Resumption):
        saved = 0

        def save(self, training):
            if training.step == training.recipe.steps and not self.saved:
                signal.raise_signal(signal.SIGTERM)
            self.saved += 1
            return super().save(training)

    path = tmp_path / "c.safetensors"
    steps = training([1]).recipe.steps
    with pytest.raises(Interrupted, match=f"saved at step {steps} of {steps}"):
        trained([1], resumption=Slow(path, every_seconds=100))
    assert Checkpoint.load(path).values["step"] == steps
