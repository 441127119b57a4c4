"""Training: replicas, freezing, data streams, and continuing after a cut."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from iclbench import Recipe, RecordError, UsageError, training_batch
from iclbench.training.checkpoints import Checkpoint
from iclbench.training.loop import Replica, Training
from iclbench.training.resumption import Resumption, restore
from iclbench_least_squares.fixed import FixedConfig, LeastSquares

TASK = LeastSquares(FixedConfig(dim=2, examples=4))
CPU = torch.device("cpu")


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(15, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, prompt) -> Tensor:
        return self.net(prompt.tokens.flatten(1)).unsqueeze(1)


class Noisy(Small):
    def forward(self, prompt) -> Tensor:
        return nn.functional.dropout(super().forward(prompt), 0.2, self.training)


def training(seeds, dtype=torch.float64, cls=Small, rates=None, **recipe):
    modules = []
    for seed in seeds:
        torch.manual_seed(seed)
        modules.append(cls().to(dtype))
    values = {"steps": 30, "batch": 8, "chunk": 5, **recipe}
    rates = rates or [1e-2] * len(seeds)
    replicas = [Replica(s, r) for s, r in zip(seeds, rates, strict=True)]
    return Training(modules, replicas, TASK, Recipe(**values), device=CPU, dtype=dtype)


def trained(*args, resumption=None, observer=lambda step, loss: None, **kwargs):
    return training(*args, **kwargs).run(resumption, observer)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-3), (torch.float64, 1e-10)], ids=str
)
def test_seeds_alone_and_as_replicas_give_the_same_losses(dtype, tolerance):
    """After 30 Adam steps the losses differ by at most 1e-3 in float32, 1e-10 in float64."""
    together = trained([3, 4, 5], dtype)
    assert together.replicas == 3
    for column, seed in enumerate([3, 4, 5]):
        alone = trained([seed], dtype)
        assert alone.replicas == 1
        expected = torch.tensor([row[0] for row in alone.curve])
        found = torch.tensor([row[column] for row in together.curve])
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=0)


def test_each_replica_has_its_own_learning_rate():
    together = trained([3, 3], rates=[1e-2, 3e-2])
    for column, rate in enumerate([1e-2, 3e-2]):
        alone = trained([3], rates=[rate])
        assert [row[column] for row in together.curve] == pytest.approx(
            [row[0] for row in alone.curve], rel=1e-10
        )


def test_a_shorter_training_is_the_beginning_of_a_longer():
    longer, shorter = trained([3], chunk=1), trained([3], chunk=1, steps=7)
    assert longer.curve[:7] == shorter.curve


@pytest.mark.parametrize("cls", [Small, Noisy])
def test_observing_and_checkpointing_change_no_bit(tmp_path, cls):
    plain = trained([1, 2], cls=cls)
    seen = []
    watched = trained(
        [1, 2],
        cls=cls,
        resumption=Resumption(tmp_path / "c.safetensors", every_seconds=0),
        observer=lambda step, loss: seen.append((step, loss, torch.randn(3))),
    )
    assert seen[-1][0] == 30
    assert plain.curve == watched.curve
    assert same(plain, watched)


class CutError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "RAdam"])
@pytest.mark.parametrize("cls", [Small, Noisy])
def test_a_cut_training_continues_to_the_same_bits(tmp_path, optimizer, cls):
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


def test_no_resume_starts_afresh(tmp_path):
    path = tmp_path / "c.safetensors"
    trained([1], resumption=Resumption(path, every_seconds=0))
    again = trained([1], resumption=Resumption(path, resume=False))
    assert again.curve_steps[0] == 5


@pytest.mark.parametrize("damage", ["truncated", "other seeds", "not safetensors", "other code"])
def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path, damage):
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


def test_a_checkpoint_is_kept_between_two_points_of_the_curve(tmp_path):
    """One point in 500 steps, and a cut in the middle: the resumed curve is the same."""
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
    assert (saved["step"], saved["curve_steps"], saved["window"][1]) == (600, [500], 100)
    straight, resumed = training([1], **options), training([1], **options)
    for one in (straight, resumed):
        one.recipe = one.recipe.model_copy(update={"steps": 1000})
    restore(resumed, Checkpoint.load(path), Resumption(path))
    for one in (straight, resumed):
        while one.step < 1000:
            one.window.add(one.advance())
            if one.step % 500 == 0:
                one.curve.append(one.window.close())
    assert straight.curve == resumed.curve


def test_a_diverging_replica_is_frozen_and_the_others_go_on():
    both = trained([1, 2], rates=[1e-2, 1e30], optimizer="sgd")
    assert both.diverged_at[0] is None
    assert both.diverged_at[1] is not None
    alone = trained([1], optimizer="sgd")
    for name, value in alone.states[0].items():
        torch.testing.assert_close(both.states[0][name], value)
    assert all(torch.isfinite(t).all() for t in both.states[1].values())


def test_training_stops_when_every_replica_has_diverged():
    result = trained([1], rates=[1e30], optimizer="sgd", steps=1000)
    assert result.curve_steps[-1] < 1000


def test_replicas_that_cannot_be_stacked_are_trained_in_turn_and_it_is_said():
    result = trained([1, 2], cls=Noisy)
    assert result.replicas == 1
    assert "random numbers" in result.note
    alone = trained([2], cls=Noisy)
    assert [row[1] for row in result.curve] == [row[0] for row in alone.curve]


@pytest.mark.parametrize("optimizer", ["lbfgs", "gauss-newton"])
def test_what_takes_whole_batches_refuses_a_model_that_draws(optimizer):
    with pytest.raises(UsageError, match="draws no random numbers"):
        trained([1, 2], cls=Noisy, optimizer=optimizer)


def test_clipping_is_torch_s():
    clipped = trained([1], clip=0.5, optimizer="sgd", steps=5, chunk=1)
    torch.manual_seed(1)
    module = Small().to(torch.float64)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-2)
    generator = training([1], chunk=1).data.generators[0]
    for _ in range(5):
        batch = training_batch(TASK, 8, generator, torch.float64)
        optimizer.zero_grad()
        TASK.loss(module(batch.prompt), batch.target).mean().backward()
        nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        optimizer.step()
    for name, value in module.named_parameters():
        torch.testing.assert_close(clipped.states[0][name], value.detach())


def test_initialization_and_data_have_streams_of_their_own():
    first, second = training([1]).data.generators[0], training([2]).data.generators[0]
    assert not torch.equal(first.get_state(), second.get_state())
    assert torch.equal(first.get_state(), training([1], steps=99).data.generators[0].get_state())


def same(a, b) -> bool:
    return all(
        torch.equal(x[name], y[name]) for x, y in zip(a.states, b.states, strict=True) for name in x
    )


@pytest.mark.gpu
def test_seeds_alone_and_as_replicas_agree_on_a_gpu():
    pytest.skip("no CUDA device") if not torch.cuda.is_available() else None
    device = torch.device("cuda")
    torch.manual_seed(0)
    modules = [Small().double() for _ in range(2)]
    recipe = Recipe(steps=30, batch=8, chunk=5)
    who = [Replica(0, 1e-2), Replica(1, 1e-2)]
    options = {"device": device, "dtype": torch.float64}
    both = Training(modules, who, TASK, recipe, **options).run(None, lambda s, x: None)
    for r in range(2):
        alone = Training([modules[r]], [who[r]], TASK, recipe, **options)
        curve = alone.run(None, lambda s, x: None).curve
        assert [row[r] for row in both.curve] == pytest.approx([row[0] for row in curve], rel=1e-9)


ADAPTIVE = {
    "schedule": "adaptive",
    "decay_every": 6,
    "measure_every": 4,
    "measure_batches": 3,
    "gradient_memory": 0.9,
    "chunk": 1,
}


def test_measuring_the_cosine_changes_no_training_data():
    """With a factor of 1 the adaptive schedule is the constant one, to the bit."""
    constant = trained([1, 2], gradient_memory=0.9, chunk=1)
    measured = trained([1, 2], **{**ADAPTIVE, "decay": 1.0})
    assert constant.curve == measured.curve
    assert same(constant, measured)


@pytest.mark.parametrize(("threshold", "factor"), [(-1.0, 0.9**5), (1.0, 0.9**-5)])
def test_the_adaptive_rate_falls_where_gradients_agree_and_rises_elsewhere(threshold, factor):
    made = training([1, 2], **ADAPTIVE, cosine_threshold=threshold)
    made.adaptive.cosine *= 0.99  # the running mean starts at 1, which is no measurement
    made.run(None, lambda step, loss: None)
    assert made.adaptive.factor.tolist() == pytest.approx([factor, factor])


def test_the_running_cosine_is_that_of_consecutive_fresh_gradients():
    made = training([1, 2], **ADAPTIVE, cosine_memory=0.5)
    seen = []
    measure = made.measure

    def spy(batches):
        seen.append(measure(batches))
        return seen[-1]

    made.measure = spy
    made.run(None, lambda step, loss: None)
    expected = torch.ones(2, dtype=torch.float64)
    for gradients in seen:
        a, b, c = gradients
        cosines = [torch.nn.functional.cosine_similarity(*p, dim=1) for p in ((a, b), (b, c))]
        expected = 0.5 * expected + 0.5 * (cosines[0] + cosines[1]) / 2
    assert len(seen) == 7
    torch.testing.assert_close(made.adaptive.cosine, expected)


def test_replicas_adapt_by_themselves():
    together = training([1, 2], **ADAPTIVE, cosine_threshold=0.97)
    together.run(None, lambda step, loss: None)
    for r, seed in enumerate([1, 2]):
        alone = training([seed], **ADAPTIVE, cosine_threshold=0.97)
        alone.run(None, lambda step, loss: None)
        torch.testing.assert_close(alone.adaptive.cosine[0], together.adaptive.cosine[r])
        torch.testing.assert_close(alone.adaptive.factor[0], together.adaptive.factor[r])


def test_the_mean_of_gradients_is_added_to_them():
    """SGD by hand on one replica: g + λ·mean, the mean starting as the first gradient."""
    recipe = {"optimizer": "sgd", "gradient_memory": 0.8, "gradient_weight": 2.0, "chunk": 1}
    made = training([1], steps=4, **recipe)
    flat, mean, found = made.replicas.flat.clone(), None, []
    gradients = made._gradients

    def spy(batch):
        found.append(gradients(batch))
        return found[-1]

    made._gradients = spy
    made.run(None, lambda step, loss: None)
    for _, grad in found:
        mean = grad if mean is None else 0.8 * mean + 0.2 * grad
        flat = flat - 1e-2 * (grad + 2.0 * mean)
    torch.testing.assert_close(made.replicas.flat, flat)


def test_a_cut_adaptive_training_continues_to_the_same_bits(tmp_path):
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
