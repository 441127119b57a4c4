"""SOAP: Adam in the eigenbasis of Shampoo's preconditioner."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from ...api.config import Config
from ..replicas import Replicas
from .adam import Beta
from .base import Stacked, Update
from .eigen import eigh


class SOAP(Stacked):
    """SOAP (Vyas et al. 2024, arXiv:2409.11321, Algorithm 3), in the steps of pytorch-optimizer.

    Each axis of a parameter has a running mean of G Gᵀ, G the gradient with that axis first. The
    squares of Adam are kept in the eigenbases of these matrices, which follow them by one step of
    orthogonal iteration every `every` steps. An axis longer than `longest`, and a vector, keep
    their own basis. The first step takes the eigenbases of the first gradient and moves nothing.

    Parameters of one shape, of all layers and all replicas, are one batch of matrices.
    """

    class Arguments(Config):
        """As in the paper; the weight decay is decoupled."""

        betas: tuple[Beta, Beta] = (0.95, 0.95)
        eps: float = Field(1e-8, ge=0)
        weight_decay: float = Field(0.0, ge=0)
        shampoo_beta: Beta = Field(
            0.95, description="decay of the running means of GGᵀ and GᵀG, for a gradient matrix G"
        )
        every: int = Field(
            10, ge=1, description="number of steps between updates of the eigenbases"
        )
        longest: int = Field(
            1024, ge=1, description="size of the longest axis that gets an eigenbasis"
        )

    elementwise: ClassVar[bool] = False

    def __init__(self, replicas: Replicas, arguments: dict[str, Any]) -> None:
        super().__init__(replicas, arguments)
        self._replicas = replicas
        self._groups = [
            _Group(names, shape, replicas, self.arguments.longest)
            for shape, names in _by_shape(replicas).items()
        ]
        self._started = False

    def update(self, by: Update) -> None:
        """See `Optimizer.update`."""
        a, (beta1, beta2) = self.arguments, self.arguments.betas
        # What a diverged replica has is never read, but no decomposition takes a NaN.
        grad = torch.where(by.alive.unsqueeze(1), by.grad, 0.0)
        parts = self._replicas.split(grad)
        if not self._started:
            for group in self._groups:
                group.start(group.gather(parts), 1 - a.shampoo_beta)
            self._started = True
            return
        step = int(by.step) - 1
        scale = math.sqrt(1 - beta2**step) / (1 - beta1**step)
        delta = torch.empty_like(self.flat)
        deltas = self._replicas.split(delta)
        for group in self._groups:
            g = group.gather(parts)
            group.scatter(group.direction(g, 1 - beta1, 1 - beta2, a.eps), deltas)
            group.follow(g, 1 - a.shampoo_beta, turn=step % a.every == 0)
        rate = by.rate.unsqueeze(1)
        delta *= rate * scale
        if a.weight_decay:
            delta += rate * a.weight_decay * (self.flat - delta)
        self.subtract(delta, by.alive)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return every group's moments, products and bases."""
        groups = enumerate(self._groups)
        return {f"{i}/{k}": t for i, group in groups for k, t in group.state().items()}, {
            "started": self._started
        }

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Copy them."""
        self._started = values["started"]
        for i, group in enumerate(self._groups):
            for name, tensor in group.state().items():
                tensor.copy_(tensors[f"{i}/{name}"])


class _Group:
    """The parameters of one shape (n₁, …, nₖ): K names of R replicas, a batch of B = R·K."""

    def __init__(
        self, names: list[str], shape: torch.Size, replicas: Replicas, longest: int
    ) -> None:
        self.names, self.shape, self._count = names, shape, replicas.count
        batch, like = replicas.count * len(names), replicas.flat
        self.mean, self.square = (like.new_zeros(batch, *shape) for _ in range(2))
        # An axis of one has one basis; a vector keeps its own, as in Adam.
        axes = [i for i, n in enumerate(shape) if 1 < n <= longest] if len(shape) > 1 else []
        self.products = {i: like.new_zeros(batch, shape[i], shape[i]) for i in axes}
        self.bases = {i: torch.zeros_like(product) for i, product in self.products.items()}

    def gather(self, parts: dict[str, Tensor]) -> Tensor:
        """The group's part of named parts (R, …), (B, n₁, …, nₖ)."""
        return torch.stack([parts[name] for name in self.names], dim=1).flatten(0, 1)

    def scatter(self, values: Tensor, parts: dict[str, Tensor]) -> None:
        """Write a batch to the named parts."""
        values = values.view(self._count, len(self.names), *self.shape)
        for k, name in enumerate(self.names):
            parts[name].copy_(values[:, k])

    def start(self, grad: Tensor, weight: float) -> None:
        """Take the eigenbases of the first gradient."""
        self._mix(grad, weight)
        for i, product in self.products.items():
            # What overflows has no decomposition, and must not cost the other replicas theirs.
            finite = torch.where(product.isfinite(), product, 0.0)
            # Columns by falling eigenvalues.
            self.bases[i].copy_(eigh(finite)[1].flip(2))

    def direction(self, grad: Tensor, weight1: float, weight2: float, eps: float) -> Tensor:
        """Adam's quotient of moments, computed in the eigenbases."""
        self.mean.lerp_(grad, weight1)
        self.square.lerp_(self._turned(grad).square_(), weight2)
        return self._turned(self._turned(self.mean) / self.square.sqrt().add_(eps), back=True)

    def follow(self, grad: Tensor, weight: float, turn: bool) -> None:
        """Add a gradient to the products and, every few steps, turn the bases after them."""
        self._mix(grad, weight)
        if not turn:
            return
        for i, product in self.products.items():
            image = product @ self.bases[i]
            order = (self.bases[i] * image).sum(dim=1).argsort(dim=1, descending=True)
            shape = [1] * len(self.shape)
            shape[i] = -1
            index = order.view(len(order), *shape).expand_as(self.square)
            # The squares go with their eigenvectors.
            self.square.copy_(self.square.gather(i + 1, index))
            image = image.gather(2, order.unsqueeze(1).expand_as(image))
            self.bases[i].copy_(torch.linalg.qr(image)[0])

    def state(self) -> dict[str, Tensor]:
        """All tensors that change, by name."""
        return {
            "mean": self.mean,
            "square": self.square,
            **{f"product/{i}": product for i, product in self.products.items()},
            **{f"basis/{i}": basis for i, basis in self.bases.items()},
        }

    def _mix(self, grad: Tensor, weight: float) -> None:
        for i, product in self.products.items():
            rows = grad.movedim(i + 1, 1).flatten(2)
            product.lerp_(rows @ rows.mT, weight)

    def _turned(self, values: Tensor, back: bool = False) -> Tensor:
        """The batch in the eigenbases, or from them."""
        for i, basis in self.bases.items():
            rows = values.movedim(i + 1, -1)
            values = (rows.flatten(1, -2) @ (basis.mT if back else basis)).view_as(rows)
            values = values.movedim(-1, i + 1)
        return values


def _by_shape(replicas: Replicas) -> dict[torch.Size, list[str]]:
    groups: dict[torch.Size, list[str]] = {}
    for name, shape in replicas.shapes.items():
        groups.setdefault(shape, []).append(name)
    return groups
