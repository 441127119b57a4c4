"""Iterative solvers of least squares, each with its number of iterations."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from iclbench import Config, Signature, Solver

from .solver import Examples, LinearSolver, Solve, examples_of
from .systems import Iterate, conjugate_gradient, newton, supports_systems


class GradientDescentConfig(Config):
    """Steps and step size."""

    steps: int = Field(400, ge=0, description="number of gradient steps")
    step_size: float | Literal["optimal", "prompt"] = Field(
        "optimal", description="η; optimal: 2/(λmin + λmax) of each prompt's Hessian; prompt: its η"
    )
    normalize: Literal["mean", "sum"] = Field(
        "mean", description="the gradient's 1/N, or none (elsa, eqs. 35–36)"
    )


class GradientDescent(LinearSolver):
    """w ← w − η (1/N) [Xᵀ(Xw − y) + λw] from w = 0 (least_squares, eq. 45; elsa, eqs. 35–36).

    λ is the prompt's, 0 where it has none.
    """

    name = "gradient-descent"
    Config = GradientDescentConfig

    def supports(self, signature: Signature, config: GradientDescentConfig) -> str | None:
        """As every solver; the prompt's step needs a prompt that has one."""
        if config.step_size == "prompt" and "step" not in getattr(signature.prompt, "_fields", ()):
            return f"step_size=prompt: {signature.prompt.__name__} has no step"
        return super().supports(signature, config)

    def build(self, signature: Signature, config: GradientDescentConfig) -> nn.Module:
        """A module that also offers its iterates."""
        return _Descend(self, signature, config)

    def weights(self, examples: Examples, config: GradientDescentConfig) -> Tensor:
        """w (B, D, K)."""
        return deque(self.iterates(examples, config), maxlen=1).pop()

    def iterates(self, examples: Examples, config: GradientDescentConfig) -> Iterator[Tensor]:
        """w₀ = 0, w₁, …, each (B, D, K)."""
        scale = 1.0 / examples.x.shape[1] if config.normalize == "mean" else 1.0
        eta: float | Tensor
        if config.step_size == "optimal":
            eta = optimal_step(examples, scale)
        elif config.step_size == "prompt":
            eta = cast(Tensor, examples.step)
        else:
            eta = config.step_size
        w = torch.zeros_like(examples.x.mT @ examples.y)
        yield w
        for _ in range(config.steps):
            w = w - eta * (scale * gradient(examples, w))
            yield w


class ExactGradient(Solver):
    """(1/N) Xᵀ(Xw − y) at the prompt's own w (least_squares, eq. 45)."""

    name = "exact-gradient"

    def supports(self, signature: Signature, config: Config) -> str | None:
        """It needs x, y and w, and a task that asks for the gradient."""
        missing = {"x", "y", "w"} - set(getattr(signature.prompt, "_fields", ()))
        if missing:
            return f"it needs {', '.join(sorted(missing))} in the prompt"
        return None if signature.target == "gradient" else f"it can't answer {signature.target}"

    def build(self, signature: Signature, config: Config) -> nn.Module:
        """A module without parameters."""
        return _GradientOf()


class _GradientOf(nn.Module):
    def forward(self, prompt: Any) -> Tensor:
        examples = Examples(prompt.x, prompt.y)
        return gradient(examples, prompt.w.mT).mT / examples.x.shape[1]


class _Descend(Solve):
    @property
    def iterates(self) -> int:
        return int(self.config.steps)

    def trajectory(self, prompt: Any) -> Tensor:
        """The iterates (B, steps + 1, D) of one output."""
        solver: Any = self.solver
        steps = list(solver.iterates(examples_of(prompt), self.config))
        return torch.stack([w[..., 0] for w in steps], dim=1)


def gradient(examples: Examples, w: Tensor) -> Tensor:
    """Xᵀ(Xw − y) + λw, the gradient of ½‖Xw − y‖² + ½λ‖w‖² at w (B, D, K); λ = 0 without one."""
    x, y = examples.x, examples.y
    plain = x.mT @ (x @ w - y)
    return plain if examples.ridge is None else plain + examples.ridge * w


def optimal_step(examples: Examples, scale: float) -> Tensor:
    """2/(λmin + λmax) of scale·(XᵀX + λI) on the row space of X, (B, 1, 1)."""
    # Started at 0, the iterate never leaves the row space: the zero eigenvalues don't count.
    x = examples.x
    gram = x @ x.mT if x.shape[1] < x.shape[2] else x.mT @ x
    eigenvalues: Tensor = torch.linalg.eigvalsh(scale * gram)
    extremes = (eigenvalues[:, 0] + eigenvalues[:, -1])[:, None, None]
    return 2.0 / (extremes if examples.ridge is None else extremes + 2.0 * scale * examples.ridge)


class ConjugateGradientConfig(Config):
    """The number of steps."""

    steps: int = Field(10, ge=0, description="number of steps; dim suffice in exact arithmetic")


class ConjugateGradient(LinearSolver):
    """Conjugate gradients on a system from x₀, or on the normal equations (CGLS) from w = 0."""

    name = "conjugate-gradient"
    Config = ConjugateGradientConfig

    def supports(self, signature: Signature, config: ConjugateGradientConfig) -> str | None:
        """As every solver of regression; and linear systems."""
        if signature.target == "solution":
            return supports_systems(signature)
        return super().supports(signature, config)

    def build(self, signature: Signature, config: ConjugateGradientConfig) -> nn.Module:
        """A module; on a system plain conjugate gradients."""
        if signature.target == "solution":
            return Iterate(conjugate_gradient, config.steps)
        return super().build(signature, config)

    def weights(self, examples: Examples, config: ConjugateGradientConfig) -> Tensor:
        """w (B, D, K)."""
        x, y = examples.x, examples.y
        w = x.new_zeros(x.shape[0], x.shape[2], y.shape[2])
        # A gradient below the first is rounding alone, and one below the second no longer changes
        # w; steps along either would end in overflow.
        eps = torch.finfo(x.dtype).eps
        noise = eps**2 * x.square().sum(dim=(1, 2), keepdim=True)
        residual = y
        gradient = direction = x.mT @ residual
        size = _squared(gradient)
        nothing = eps**4 * size
        for _ in range(config.steps):
            active = (size > noise * _squared(residual)) & (size > nothing)
            image = x @ direction
            step = torch.where(active, size / _squared(image), 0)
            w = w + step * direction
            residual = residual - step * image
            gradient = x.mT @ residual
            size, before = _squared(gradient), size
            direction = gradient + torch.where(active, size / before, 0) * direction
        return w


def _squared(v: Tensor) -> Tensor:
    """‖v‖² of each column, (B, 1, K)."""
    return v.square().sum(dim=1, keepdim=True)


class NewtonConfig(Config):
    """The number of iterations."""

    steps: int = Field(20, ge=0, description="number of Newton–Schulz iterations")


class Newton(LinearSolver):
    """A ← 2A − A(XᵀX)A towards (XᵀX)⁺, then w = A Xᵀy (least_squares, B.2, corrected).

    On a system the same for its own matrix.

    From A = XᵀX / λmax², λmax the largest eigenvalue of XᵀX, which converges for every X.
    """

    name = "newton"
    Config = NewtonConfig

    def supports(self, signature: Signature, config: NewtonConfig) -> str | None:
        """As every solver of regression; and linear systems."""
        if signature.target == "solution":
            return supports_systems(signature)
        return super().supports(signature, config)

    def build(self, signature: Signature, config: NewtonConfig) -> nn.Module:
        """A module; on a system the inverse of A."""
        if signature.target == "solution":
            return Iterate(newton, config.steps)
        return super().build(signature, config)

    def weights(self, examples: Examples, config: NewtonConfig) -> Tensor:
        """w (B, D, K)."""
        gram = examples.x.mT @ examples.x
        largest = torch.linalg.eigvalsh(gram)[:, -1, None, None]
        inverse: Tensor = gram / largest.square()
        for _ in range(config.steps):
            inverse = 2.0 * inverse - inverse @ gram @ inverse
        return inverse @ (examples.x.mT @ examples.y)
