"""Iterative solvers of least squares with a fixed number of iterations."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from iclbench import Config, Signature, Solver, added_later

from .solver import Examples, LinearSolver, SolverModule, examples_of
from .systems import IterationModule, conjugate_gradient, newton, supports_systems


class GradientDescentConfig(Config):
    """The steps and the step size."""

    steps: int = Field(400, ge=0, description="number of gradient steps")
    step_size: Annotated[float, Field(gt=0)] | Literal["optimal", "prompt"] = Field(
        "optimal",
        description="η, step size; optimal: 2/(λmin + λmax) of the prompt's Hessian; prompt: the η "
        "in the prompt",
    )
    normalize: Literal["mean", "sum"] = Field(
        "mean", description="mean: gradient with 1/N; sum: without (Hagiwara 2025, eqs. 35–36)"
    )
    start: Literal["zero", "prompt"] = added_later(
        "zero", description="w₀, the initial weights: zero, or those in the prompt"
    )

    @model_validator(mode="after")
    def _has_a_step_that_is_given(self) -> GradientDescentConfig:
        if self.normalize == "sum" and self.step_size == "optimal":
            raise ValueError(
                "normalize=sum needs step_size=prompt or a number: step_size=optimal makes the "
                "same steps with mean"
            )
        if self.normalize == "mean" and self.step_size == "prompt":
            raise ValueError(
                "step_size=prompt needs normalize=sum: the η in a prompt is for the gradient "
                "without 1/N"
            )
        return self


class GradientDescent(LinearSolver):
    """w ← w − η (1/N) [Xᵀ(Xw − y) + λw] from w₀ (Liu et al., eq. 45; Hagiwara, eqs. 35–36).

    λ is the prompt's, or 0.
    """

    name = "gradient-descent"
    Config = GradientDescentConfig

    def supports(self, signature: Signature, config: GradientDescentConfig) -> str | None:
        """As `LinearSolver`; what the prompt is to give must be in it."""
        fields = getattr(signature.prompt, "_fields", ())
        if config.step_size == "prompt" and "step" not in fields:
            return "step_size=prompt: the task's prompts have no step"
        if config.start == "prompt" and "w" not in fields:
            return "start=prompt: the task's prompts have no w"
        return super().supports(signature, config)

    def build(self, signature: Signature, config: GradientDescentConfig) -> nn.Module:
        """A module that also provides its iterates."""
        return _DescentModule(self, signature, config)

    def weights(self, examples: Examples, config: GradientDescentConfig) -> Tensor:
        """w (B, D, K)."""
        # Holds the last iterate only.
        return deque(self.iterates(examples, config), maxlen=1).pop()

    def iterates(self, examples: Examples, config: GradientDescentConfig) -> Iterator[Tensor]:
        """The iterates w₀, w₁, …, (B, D, K) each."""
        scale = 1.0 / examples.x.shape[1] if config.normalize == "mean" else 1.0
        eta: float | Tensor
        if config.step_size == "optimal":
            eta = optimal_step(examples, scale)
        elif config.step_size == "prompt":
            eta = cast(Tensor, examples.step)
        else:
            eta = config.step_size
        if config.start == "prompt":
            w = cast(Tensor, examples.start)
        else:
            w = torch.zeros_like(examples.x.mT @ examples.y)
        yield w
        for _ in range(config.steps):
            # The penalty is scaled along: with normalize=mean, λ too is divided by N.
            w = w - eta * (scale * gradient(examples, w))
            yield w


class ExactGradient(Solver):
    """(1/N) Xᵀ(Xw − y) at the prompt's w (Liu et al., eq. 45)."""

    name = "exact-gradient"

    def supports(self, signature: Signature, config: Config) -> str | None:
        """It needs x, y and w, and a task that asks for the gradient."""
        missing = {"x", "y", "w"} - set(getattr(signature.prompt, "_fields", ()))
        if missing:
            return f"it needs {', '.join(sorted(missing))}, which the task's prompts lack"
        target = signature.target
        return None if target == "gradient" else f"it answers gradient, not {target}"

    def build(self, signature: Signature, config: Config) -> nn.Module:
        """A module without parameters."""
        return _GradientModule()


class _GradientModule(nn.Module):
    def forward(self, prompt: Any) -> Tensor:
        examples = Examples(prompt.x, prompt.y)
        return gradient(examples, prompt.w.mT).mT / examples.x.shape[1]


class _DescentModule(SolverModule):
    @property
    def iterates(self) -> int:
        return int(self.config.steps)

    def trajectory(self, prompt: Any) -> Tensor:
        """The iterates (B, steps + 1, D) of one output."""
        solver: Any = self.solver
        steps = list(solver.iterates(examples_of(prompt), self.config))
        return torch.stack([w[..., 0] for w in steps], dim=1)


def gradient(examples: Examples, w: Tensor) -> Tensor:
    """Xᵀ(Xw − y) + λw, the gradient of ½‖Xw − y‖² + ½λ‖w‖² at w (B, D, K)."""
    x, y = examples.x, examples.y
    plain = x.mT @ (x @ w - y)
    return plain if examples.ridge is None else plain + examples.ridge * w


def optimal_step(examples: Examples, scale: float) -> Tensor:
    """2/(λmin + λmax) of scale·(XᵀX + λI) on the row space of X, (B, 1, 1)."""
    # Steps don't leave the row space, so eigenvalues that are 0 but for rounding don't matter.
    x = examples.x
    gram = x @ x.mT if x.shape[1] < x.shape[2] else x.mT @ x
    eigenvalues: Tensor = torch.linalg.eigvalsh(scale * gram)
    largest = eigenvalues[:, -1:]
    rounding = max(x.shape[1:]) * torch.finfo(x.dtype).eps * largest
    smallest = eigenvalues.where(eigenvalues > rounding, largest).amin(dim=1, keepdim=True)
    extremes = (smallest + largest)[:, :, None]
    if examples.ridge is not None:
        extremes = extremes + 2.0 * scale * examples.ridge
    # Where all of X is 0, any step is optimal.
    return torch.where(extremes > 0, 2.0 / extremes, 0.0)


class ConjugateGradientConfig(Config):
    """The number of steps."""

    steps: int = Field(
        10,
        ge=0,
        description="number of steps; in exact arithmetic, N suffice for a system of N equations "
        "and min(N, D) for regression",
    )


class ConjugateGradient(LinearSolver):
    """Conjugate gradients on a linear system from x₀, or on normal equations (CGLS) from 0."""

    name = "conjugate-gradient"
    Config = ConjugateGradientConfig

    def supports(self, signature: Signature, config: ConjugateGradientConfig) -> str | None:
        """As `LinearSolver`; also linear systems."""
        if signature.target == "solution":
            return supports_systems(signature)
        return super().supports(signature, config)

    def build(self, signature: Signature, config: ConjugateGradientConfig) -> nn.Module:
        """CGLS as a module; for linear systems, conjugate gradients."""
        if signature.target == "solution":
            return IterationModule(conjugate_gradient, config.steps)
        return super().build(signature, config)

    def weights(self, examples: Examples, config: ConjugateGradientConfig) -> Tensor:
        """w (B, D, K)."""
        # Squares of squares neither over- nor underflow.
        x, x_exponent = _of_size_one(examples.x)
        y, y_exponent = _of_size_one(examples.y)
        # CGLS works on X and Xᵀ and never forms XᵀX, whose condition number is squared.
        w = x.new_zeros(x.shape[0], x.shape[2], y.shape[2])
        # Below `noise` the gradient is rounding error; below `negligible` it no longer changes w.
        # Further steps would overflow.
        eps = torch.finfo(x.dtype).eps
        noise = eps**2 * x.square().sum(dim=(1, 2), keepdim=True)
        residual = y
        gradient = direction = x.mT @ residual
        size = _squared(gradient)
        negligible = eps**4 * size
        for _ in range(config.steps):
            active = (size > noise * _squared(residual)) & (size > negligible)
            image = x @ direction
            step = torch.where(active, size / _squared(image), 0)
            w = w + step * direction
            residual = residual - step * image
            gradient = x.mT @ residual
            size, before = _squared(gradient), size
            direction = gradient + torch.where(active, size / before, 0) * direction
        return torch.ldexp(w, y_exponent - x_exponent)


def _of_size_one(values: Tensor) -> tuple[Tensor, Tensor]:
    """Values (B, …) times a power of 2 that makes each prompt's largest about 1, and its exponent.

    Nothing is rounded.
    """
    exponent = torch.frexp(values.abs().amax(dim=(1, 2), keepdim=True)).exponent
    return torch.ldexp(values, -exponent), exponent


def _squared(v: Tensor) -> Tensor:
    """‖v‖² of each column, (B, 1, K)."""
    return v.square().sum(dim=1, keepdim=True)


class NewtonConfig(Config):
    """The number of iterations."""

    steps: int = Field(20, ge=0, description="number of Newton–Schulz iterations")


class Newton(LinearSolver):
    """Newton–Schulz: A ← 2A − A(XᵀX)A → (XᵀX)⁺, then w = A Xᵀy (Liu et al., B.2, corrected).

    It starts from A = XᵀX / λmax², where λmax is the largest eigenvalue of XᵀX. With fewer examples
    than dimensions it inverts XXᵀ, and w = XᵀAy. X should have full rank: on a null space, rounding
    errors double with every step, and show after about 40 in float32. For a linear system, the
    iteration inverts the system's matrix.
    """

    name = "newton"
    Config = NewtonConfig

    def supports(self, signature: Signature, config: NewtonConfig) -> str | None:
        """As `LinearSolver`; also linear systems."""
        if signature.target == "solution":
            return supports_systems(signature)
        return super().supports(signature, config)

    def build(self, signature: Signature, config: NewtonConfig) -> nn.Module:
        """The iteration as a module; for linear systems, with the inverse of A."""
        if signature.target == "solution":
            return IterationModule(newton, config.steps)
        return super().build(signature, config)

    def weights(self, examples: Examples, config: NewtonConfig) -> Tensor:
        """w (B, D, K)."""
        x, y = examples.x, examples.y
        is_wide = x.shape[1] < x.shape[2]
        gram = x @ x.mT if is_wide else x.mT @ x
        largest = torch.linalg.eigvalsh(gram)[:, -1, None, None]
        # All eigenvalues of A·XᵀX then lie in [0, 1], where the iteration converges.
        inverse: Tensor = gram / torch.where(largest > 0, largest.square(), 1.0)
        for _ in range(config.steps):
            # B.2 drops A₀ in its last step; Newton's iterate is 2A₀ − A₀(XᵀX)A₀.
            inverse = 2.0 * inverse - inverse @ gram @ inverse
        return x.mT @ (inverse @ y) if is_wide else inverse @ (x.mT @ y)
