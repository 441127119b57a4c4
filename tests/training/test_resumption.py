"""A killed training continues to the same bits."""

from __future__ import annotations

import pytest
from small import ADAPTIVE, CutError, Noisy, Small, new_training, same, trained

from iclbench import RecordError
from iclbench.training.checkpoints import Checkpoint
from iclbench.training.loop import Training
from iclbench.training.resumption import Resumption


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "RAdam"])
@pytest.mark.parametrize("cls", [Small, Noisy])
def test_killed_training_continues_to_the_same_bits(tmp_path, optimizer, cls):
    straight = trained([1, 2], cls=cls, optimizer=optimizer)
    path = tmp_path / "c.safetensors"

    def cut(step, loss):
        if step == 20:
            raise CutError

    with pytest.raises(CutError):
        trained([1, 2], cls=cls, optimizer=optimizer, observer=cut,
                resumption=Resumption(path, every_seconds=0))  # fmt: skip
    assert Checkpoint.load(path).values["step"] == 15
    resumed = new_training([1, 2], cls=cls, optimizer=optimizer)
    result = resumed.run(Resumption(path), lambda step, loss: None)
    assert same(straight, result)
    assert straight.curve == result.curve
    assert straight.curve_steps == result.curve_steps


def test_no_resume_starts_over(tmp_path):
    path = tmp_path / "c.safetensors"
    trained([1], resumption=Resumption(path, every_seconds=0))
    again = trained([1], resumption=Resumption(path, resume=False))
    assert again.curve_steps[0] == 5


@pytest.mark.parametrize("damage", ["truncated", "other seeds", "not safetensors", "other code"])
def test_unsuitable_checkpoint_is_refused(tmp_path, damage):
    path = tmp_path / "c.safetensors"
    trained([1, 2], resumption=Resumption(path, every_seconds=0, code="one"))
    seeds = [1, 2]
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-10])
    elif damage == "other seeds":
        seeds = [1, 3]
    elif damage == "not safetensors":
        path.write_text("nonsense")
    code = "other" if damage == "other code" else "one"
    with pytest.raises(RecordError, match="--no-resume"):
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

    cut = new_training([1], **options)
    cut.__class__ = Stop
    with pytest.raises(CutError):
        cut.run(Resumption(path, every_seconds=0), lambda step, loss: None)
    saved = Checkpoint.load(path).values
    curve = saved["curve"]
    assert (saved["step"], curve["steps"], curve["window"][1]) == (600, [500], 100)
    straight, resumed = new_training([1], **options), new_training([1], **options)
    for run in (straight, resumed):
        run.recipe = run.recipe.model_copy(update={"steps": 1000})
    Resumption(path).restore(resumed)
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
