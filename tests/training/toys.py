"""Toy modules, some of which not every program can train, and a batch for them."""

from __future__ import annotations

import copy
import time

import torch
from torch import Tensor, nn

from iclbench import Batch, Sequence
from iclbench.api.capabilities import TrainingContext
from iclbench.training.replicas import Replicas

CPU = torch.device("cpu")


class Small(nn.Module):
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


class Branching(Small):
    def forward(self, prompt: Sequence) -> Tensor:
        out = super().forward(prompt)
        return out if out.sum().item() > 0 else 2 * out


class Dropping(Small):
    def forward(self, prompt: Sequence) -> Tensor:
        return nn.functional.dropout(super().forward(prompt), 0.5, self.training)


class Counting(Small):
    """Updates buffers in place in every forward pass, by BatchNorm."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, prompt: Sequence) -> Tensor:
        return super().forward(Sequence(self.norm(prompt.tokens.mT).mT))


class Overflowing(Small):
    """Its loss is infinite from the start."""

    def forward(self, prompt: Sequence) -> Tensor:
        return super().forward(prompt) / 0


class Forgetful(Counting):
    """Its form for training leaves out what the module keeps."""

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        if context.replicas == "leading":
            return None
        form = copy.copy(self)
        form._modules = dict(self._modules)
        form._modules["norm"] = WithoutRunningMean(self.norm)
        return form


class WithoutRunningMean(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.batch_norm(
            x, None, None, self.norm.weight, self.norm.bias, training=True
        )


class Averaging(Small):
    """Replaces its buffer in every forward pass."""

    def forward(self, prompt: Sequence) -> Tensor:
        self.scale = 0.9 * self.scale + 0.1 * prompt.tokens.mean().detach()
        return super().forward(prompt)


class Clamping(Small):
    """Replaces its weights in every forward pass."""

    def forward(self, prompt: Sequence) -> Tensor:
        self.a.weight.data = self.a.weight.data.clamp(-0.1, 0.1)
        return super().forward(prompt)


class ClampingInPlace(Small):
    """It changes its weights in place."""

    def forward(self, prompt: Sequence) -> Tensor:
        with torch.no_grad():
            self.a.weight.clamp_(-0.1, 0.1)
        return super().forward(prompt)


class Replacing(Clamping):
    """Replaces its weights from the third forward pass on."""

    passes = 0

    def forward(self, prompt: Sequence) -> Tensor:
        type(self).passes += 1
        return super().forward(prompt) if type(self).passes > 2 else Small.forward(self, prompt)


class Slow(Small):
    """Sleeps in its forward pass, so that threads overlap."""

    def forward(self, prompt):
        time.sleep(0.002)
        return super().forward(prompt)


class Keeping(Small):
    """Keeps a value between two parts of a forward pass."""

    def forward(self, prompt):
        self.kept = prompt.tokens.mean()
        time.sleep(0.002)
        return super().forward(prompt) * self.kept


class Updating(Small):
    """Updates a buffer in place; with `replaces`, also replaces another one."""

    replaces = False

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, prompt):
        self.seen.add_(1)
        if self.replaces:
            self.scale = 0.9 * self.scale
        return super().forward(prompt) * (1 + self.seen)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 1, batch_first=True)

    def forward(self, prompt: Sequence) -> Tensor:
        return self.cell(prompt.tokens)[0]


class Lying(Small):
    """Silently computes something else under vmap."""

    def forward(self, prompt: Sequence) -> Tensor:
        out = super().forward(prompt)
        return out * (1.5 if torch._C._functorch.is_batchedtensor(out) else 1.0)


class LyingALittle(Small):
    """Under vmap, reverses the small gradient of one parameter and nothing else."""

    def __init__(self):
        super().__init__()
        self.small = nn.Parameter(torch.randn(()))

    def forward(self, prompt: Sequence) -> Tensor:
        out = super().forward(prompt)
        sign = -1e-6 if torch._C._functorch.is_batchedtensor(out) else 1e-6
        return out + sign * (self.small - self.small.detach())


class SinglePrecision(Small):
    """Fails in any dtype but float32."""

    def forward(self, prompt: Sequence) -> Tensor:
        if prompt.tokens.dtype != torch.float32:
            raise TypeError("float32 only")
        return super().forward(prompt)


class LyingLater(Lying):
    """Lies by a term that is zero at initialization, as a zero-initialized mixer is."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(()))

    def forward(self, prompt: Sequence) -> Tensor:
        honest = Small.forward(self, prompt)
        return honest + self.gain**2 * Lying.forward(self, prompt)


class Exploding(Small):
    """Overflows, even in float64, as soon as its parameters change."""

    def __init__(self) -> None:
        super().__init__()
        self.power = nn.Parameter(torch.zeros(3))

    def forward(self, prompt: Sequence) -> Tensor:
        return Small.forward(self, prompt) + (1e30 * self.power.square()).pow(16).sum()


class TakingReplicas(nn.Module):
    """Is its own training form for leading replicas."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(4, 1))
        self.register_buffer("scale", torch.tensor([2.0]))

    def for_training(self, context: TrainingContext) -> nn.Module:
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
        out = super().forward(prompt)
        return out.mean(dim=0, keepdim=True).expand_as(out) if out.ndim == 4 else out


class Single(nn.Module):
    """Has one parameter, whose gradient autograd returns as a view."""

    def __init__(self, repeated: bool):
        super().__init__()
        self.w, self.repeated = nn.Parameter(torch.randn(4)), repeated

    def forward(self, prompt: Sequence) -> Tensor:
        if self.repeated:
            return prompt.tokens[..., :1] + self.w.sum()
        return prompt.tokens @ torch.stack([self.w, torch.ones_like(self.w)], -1)[:, :1]


class Static:
    """Returns its results in the same memory at every call, as a captured program does."""

    def __init__(self, program):
        self.program, self.name, self.results = program, program.name, None

    def __call__(self, batch):
        results = self.program(batch)
        if self.results is None:
            self.results = [t.clone() for t in results]
        for kept, value in zip(self.results, results, strict=True):
            kept.copy_(value)
        return self.results


def loss(prediction: Tensor, target: Tensor) -> Tensor:
    return (prediction - target).square().mean(dim=(1, 2))


def stacked(cls, count=3):
    torch.manual_seed(0)
    modules = [cls() for _ in range(count)]
    batch = Batch(Sequence(torch.randn(count, 5, 7, 4)), torch.randn(count, 5, 7, 1))
    return modules, Replicas(modules, CPU), batch


def single(replicas: Replicas, replica: int, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return one replica's loss and gradient, computed by the paper's module."""
    row = replicas.flat[replica].clone().requires_grad_()
    prediction = replicas.predict(replica, row, Sequence(batch.prompt.tokens[replica]))
    value = loss(prediction, batch.target[replica]).mean()
    return value.detach(), torch.autograd.grad(value, row)[0]


def context(**values) -> TrainingContext:
    return TrainingContext(CPU, torch.float32, batch_size=5, **values)
