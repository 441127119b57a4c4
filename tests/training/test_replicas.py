"""Stacked replicas compute what each computes alone, or are not stacked."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from iclbench import Batch, Sequence, UsageError
from iclbench.training.agreement import disagreement
from iclbench.training.replicas import Replicas

CPU = torch.device("cpu")


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 1)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, prompt: Sequence) -> Tensor:
        return self.scale * self.b(torch.tanh(self.a(prompt.tokens)))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, prompt: Sequence) -> Tensor:
        return self.b(torch.tanh(self.a(prompt.tokens))).mean(-1, keepdim=True)


class Branching(Plain):
    def forward(self, prompt: Sequence) -> Tensor:
        out = super().forward(prompt)
        return out if out.sum().item() > 0 else 2 * out


class Dropping(Plain):
    def forward(self, prompt: Sequence) -> Tensor:
        return nn.functional.dropout(super().forward(prompt), 0.5, self.training)


class Counting(Plain):
    """Its buffer changes in every forward pass, as BatchNorm's does."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, prompt: Sequence) -> Tensor:
        return super().forward(Sequence(self.norm(prompt.tokens.mT).mT))


class Averaging(Plain):
    """Its buffer is another tensor after every forward pass."""

    def forward(self, prompt: Sequence) -> Tensor:
        self.scale = 0.9 * self.scale + 0.1 * prompt.tokens.mean().detach()
        return super().forward(prompt)


class Clamping(Plain):
    """Its weights are other tensors after every forward pass."""

    def forward(self, prompt: Sequence) -> Tensor:
        self.a.weight.data = self.a.weight.data.clamp(-0.1, 0.1)
        return super().forward(prompt)


class Replacing(Clamping):
    """It begins to be so in its third forward pass."""

    passes = 0

    def forward(self, prompt: Sequence) -> Tensor:
        type(self).passes += 1
        return super().forward(prompt) if type(self).passes > 2 else Plain.forward(self, prompt)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 1, batch_first=True)

    def forward(self, prompt: Sequence) -> Tensor:
        return self.cell(prompt.tokens)[0]


class Lying(Plain):
    """Silently computes something else when it is vmapped."""

    def forward(self, prompt: Sequence) -> Tensor:
        out = super().forward(prompt)
        return out * (1.5 if torch._C._functorch.is_batchedtensor(out) else 1.0)


class LyingALittle(Plain):
    """Under vmap the small gradient of one parameter is reversed, and nothing else."""

    def __init__(self):
        super().__init__()
        self.small = nn.Parameter(torch.randn(()))

    def forward(self, prompt: Sequence) -> Tensor:
        out = super().forward(prompt)
        sign = -1e-6 if torch._C._functorch.is_batchedtensor(out) else 1e-6
        return out + sign * (self.small - self.small.detach())


class SinglePrecision(Plain):
    """It can't be evaluated in float64."""

    def forward(self, prompt: Sequence) -> Tensor:
        if prompt.tokens.dtype != torch.float32:
            raise TypeError("float32 alone")
        return super().forward(prompt)


class LyingLater(Lying):
    """A lie that starts at zero, as a zero-initialized mixer does."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(()))

    def forward(self, prompt: Sequence) -> Tensor:
        honest = Plain.forward(self, prompt)
        return honest + self.gain**2 * Lying.forward(self, prompt)


class Exploding(Plain):
    """Overflows, even in float64, once its parameters are moved."""

    def __init__(self) -> None:
        super().__init__()
        self.power = nn.Parameter(torch.zeros(3))

    def forward(self, prompt: Sequence) -> Tensor:
        return Plain.forward(self, prompt) + (1e300 * self.power.square()).square().sum()


class TakingReplicas(nn.Module):
    """Its forward pass is of several replicas where its parameters are."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(4, 1))
        self.register_buffer("scale", torch.tensor([2.0]))

    def for_training(self, context):
        return self

    def forward(self, prompt: Sequence) -> Tensor:
        if self.a.ndim == 2:
            return torch.tanh(self.scale * prompt.tokens @ self.a)
        scale = self.scale[:, None, None]
        return torch.tanh(torch.einsum("rbsc,rcd->rbsd", scale * prompt.tokens, self.a))


class MixingReplicas(TakingReplicas):
    def for_training(self, context):
        return self

    def forward(self, prompt: Sequence) -> Tensor:
        found = super().forward(prompt)
        return found.mean(dim=0, keepdim=True).expand_as(found) if found.ndim == 4 else found


def loss(prediction: Tensor, target: Tensor) -> Tensor:
    return (prediction - target).square().mean(dim=(1, 2))


def stacked(cls, count=3):
    torch.manual_seed(0)
    modules = [cls() for _ in range(count)]
    batch = Batch(Sequence(torch.randn(count, 5, 7, 4)), torch.randn(count, 5, 7, 1))
    return modules, Replicas(modules, CPU), batch


def test_models_that_overflow_when_moved_are_compared_where_they_are():
    _, replicas, batch = stacked(Exploding)
    assert disagreement(replicas, batch, loss) is None


@pytest.mark.parametrize("cls", [Plain, Tied, Counting, SinglePrecision, TakingReplicas])
def test_losses_and_gradients_are_each_module_s_own(cls):
    modules, replicas, batch = stacked(cls)
    assert disagreement(replicas, batch, loss) is None
    losses, grads = replicas.gradients(batch, loss)
    for r, module in enumerate(modules):
        alone = loss(module(Sequence(batch.prompt.tokens[r])), batch.target[r]).mean()
        own = torch.autograd.grad(alone, list(module.parameters()))
        torch.testing.assert_close(losses[r], alone.detach())
        torch.testing.assert_close(grads[r], torch.cat([g.reshape(-1) for g in own]))


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (Branching, "can't be vmapped"),
        (Recurrent, "can't be vmapped"),
        (Lying, "differ"),
        (LyingALittle, "gradients of small differ"),
        (LyingLater, "differ"),
        (MixingReplicas, "differ"),
    ],
)
def test_what_cannot_be_stacked_is_noticed(cls, reason):
    _, replicas, batch = stacked(cls)
    assert reason in disagreement(replicas, batch, loss)


class Single(nn.Module):
    """One parameter, whose gradient autograd gives as a view."""

    def __init__(self, repeated: bool):
        super().__init__()
        self.w, self.repeated = nn.Parameter(torch.randn(4)), repeated

    def forward(self, prompt: Sequence) -> Tensor:
        if self.repeated:
            return prompt.tokens[..., :1] + self.w.sum()
        return prompt.tokens @ torch.stack([self.w, torch.ones_like(self.w)], -1)[:, :1]


@pytest.mark.parametrize("repeated", [True, False])
def test_a_gradient_lies_in_memory_as_it_is_read(repeated):
    torch.manual_seed(0)
    module = Single(repeated)
    replicas = Replicas([module], CPU)
    batch = Batch(Sequence(torch.randn(1, 5, 7, 4)), torch.randn(1, 5, 7, 1))
    _, grad = replicas.gradients(batch, loss)
    assert grad.is_contiguous()
    grad.add_(1.0)  # as where gradients are accumulated
    alone = loss(module(Sequence(batch.prompt.tokens[0])), batch.target[0]).mean()
    (expected,) = torch.autograd.grad(alone, module.w)
    torch.testing.assert_close(grad[0] - 1.0, expected)


def test_frozen_parameters_of_a_module_that_takes_replicas_are_not_trained():
    modules, whole, batch = stacked(TakingReplicas)
    for module in modules:
        module.b = nn.Parameter(torch.randn(1))
    part = Replicas(modules, CPU, freeze=("b",))
    torch.testing.assert_close(part.gradients(batch, loss), whole.gradients(batch, loss))


@pytest.mark.parametrize("group", [1, 2, 3])
def test_a_module_that_takes_replicas_is_called_with_them(group, monkeypatch):
    """In groups, and by vmap after a change of mind: the same but for rounding."""
    _, replicas, batch = stacked(TakingReplicas)
    expected = [replicas.gradient_of(r, batch, loss) for r in range(3)]
    replicas.group = group
    with monkeypatch.context() as patch:
        patch.setattr("iclbench.training.replicas.vmap", None)
        found = replicas.gradients(batch, loss)
    replicas.takes_replicas = False
    for losses, grads in (found, replicas.gradients(batch, loss)):
        torch.testing.assert_close(losses, torch.stack([value for value, _ in expected]))
        torch.testing.assert_close(grads, torch.stack([grad for _, grad in expected]))


def test_random_numbers_in_a_forward_pass_are_noticed():
    for cls, draws in ((Dropping, True), (Plain, False), (Counting, False)):
        _, replicas, batch = stacked(cls)
        assert replicas.draws(batch) is draws


def test_the_check_leaves_everything_as_it_was():
    _, replicas, batch = stacked(Counting)
    fixed = {name: value.clone() for name, value in replicas.fixed.items()}
    flat, state = replicas.flat.clone(), torch.get_rng_state()
    replicas.draws(batch)
    disagreement(replicas, batch, loss)
    assert torch.equal(replicas.flat, flat)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, fixed[name]) for name, value in replicas.fixed.items())


@pytest.mark.parametrize("together", [True, False])
def test_buffers_that_a_module_updates_are_kept_for_each_replica(together):
    modules, replicas, batch = stacked(Counting)
    replicas.stacked = together
    replicas.template.train()
    replicas.gradients(batch, loss)
    for r, module in enumerate(modules):
        module.train()(Sequence(batch.prompt.tokens[r]))
        state = replicas.state(r)
        torch.testing.assert_close(state["norm.running_mean"], module.norm.running_mean)
        assert state["norm.num_batches_tracked"] == 1


def test_frozen_parameters_are_not_trained():
    modules, _, batch = stacked(Plain)
    replicas = Replicas(modules, CPU, freeze=("a.*",))
    assert list(replicas.shapes) == ["b.weight", "b.bias"]
    assert replicas.flat.shape == (3, 7)
    assert disagreement(replicas, batch, loss) is None
    torch.testing.assert_close(replicas.state(1)["a.weight"], modules[1].a.weight.detach())


@pytest.mark.parametrize(("pattern", "message"), [("c.*", "matches no"), ("*", "nothing to train")])
def test_a_freeze_that_makes_no_sense_is_refused(pattern, message):
    modules, _, _ = stacked(Plain)
    with pytest.raises(UsageError, match=message):
        Replicas(modules, CPU, freeze=(pattern,))


def test_a_state_loads_into_the_module():
    modules, replicas, _ = stacked(Plain)
    modules[0].load_state_dict(replicas.state(2))
    torch.testing.assert_close(modules[0].a.weight, modules[2].a.weight)


@pytest.mark.parametrize("cls", [Averaging, Clamping, Replacing])
def test_a_module_that_puts_tensors_elsewhere_is_still_trained_on_its_row(cls):
    Replacing.passes = 0
    _, replicas, batch = stacked(cls, count=1)
    for moved in range(5):
        replicas.flat += 0.1  # as an optimizer does, in place
        value, grad = replicas.gradient_of(0, batch, loss)
        row = replicas.flat[0].clone().requires_grad_()
        fixed = {name: values[0] for name, values in replicas.fixed.items()}
        expected = replicas._single_loss(
            replicas.called(5),
            row,
            fixed,
            Batch(Sequence(batch.prompt.tokens[0]), batch.target[0]),
            loss,
        )
        torch.testing.assert_close(value, expected.detach(), msg=f"after {moved} steps")
        torch.testing.assert_close(grad, torch.autograd.grad(expected, row)[0])
    assert not replicas.binds


@pytest.mark.parametrize("cls", [Plain, Tied, Counting])
def test_a_module_stays_on_its_row_through_updates_and_copies(cls):
    _, replicas, batch = stacked(cls, count=1)
    replicas.gradient_of(0, batch, loss)
    for other in (replicas, copy.deepcopy(replicas), replicas.copy()):
        other.flat += 0.3
        _, grad = other.gradient_of(0, batch, loss)
        fresh = other.copy()
        torch.testing.assert_close(grad, fresh.gradient_of(0, batch, loss)[1])
        assert other.binds


def test_frozen_parameters_have_no_part_in_a_bound_gradient():
    _, whole, batch = stacked(Tied, count=1)
    modules, _, _ = stacked(Tied, count=1)
    part = Replicas(modules, CPU, ("a.weight",))
    names = iter(zip(whole.shapes, whole.split(whole.gradient_of(0, batch, loss)[1]), strict=True))
    expected = torch.cat([g.reshape(-1) for name, g in names if name != "a.weight"])
    torch.testing.assert_close(part.gradient_of(0, batch, loss)[1], expected)
