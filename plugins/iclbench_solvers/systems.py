"""Solvers of symmetric positive definite systems Ax = b with a fixed number of iterations.

An iteration costs one product with A, N² multiply-adds, and `conjugate-gradient` one more in all.
Exceptions: `steepest-descent` needs two products, and `newton` 2N³ multiply-adds. The extreme
eigenvalues that some need are not counted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from iclbench import Config, LinearSystem, Signature, Solver


class System(NamedTuple):
    """Linear systems: a (B, N, N), b and x0 (B, N, 1)."""

    a: Tensor
    b: Tensor
    x0: Tensor

    def residual(self, x: Tensor) -> Tensor:
        """The residual b − Ax (B, N, 1)."""
        return self.b - self.a @ x

    def extremes(self) -> tuple[Tensor, Tensor]:
        """The smallest and the largest eigenvalue, (B, 1, 1) each."""
        # A is symmetric: eigenvalues are real and in ascending order.
        values = torch.linalg.eigvalsh(self.a)
        return values[:, :1, None], values[:, -1:, None]


Iterates = Callable[[System, int], Iterator[Tensor]]


def system_of(prompt: Any) -> System:
    """The prompt's systems, with `LinearSystem.fill_padding`."""
    a = LinearSystem.fill_padding(prompt.a, prompt.size)
    return System(a, prompt.b.unsqueeze(2), prompt.x0.unsqueeze(2))


def supports_systems(signature: Signature) -> str | None:
    """None if the signature is a linear system to solve, or the reason why it is not."""
    missing = {"a", "b", "x0", "size"} - set(getattr(signature.prompt, "_fields", ()))
    if missing:
        return f"it needs {', '.join(sorted(missing))}, which the task's prompts lack"
    if signature.target != "solution":
        return f"of a system it answers solution, not {signature.target}"
    return None


class IterationsConfig(Config):
    """The number of iterations."""

    steps: int = Field(4, ge=0, description="number of iterations")


class SystemSolver(Solver):
    """A solver that iterates from the prompt's x₀."""

    Config = IterationsConfig

    def supports(self, signature: Signature, config: Any) -> str | None:
        """See `supports_systems`."""
        return supports_systems(signature)

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module without parameters that also provides its iterates."""
        return IterationModule(self.iterates, config.steps)

    @abstractmethod
    def iterates(self, system: System, steps: int) -> Iterator[Tensor]:
        """The iterates x₀, x₁, …, x_steps, (B, N, 1) each."""


class IterationModule(nn.Module):
    """An iteration as a module: the last iterate, and all of them as `trajectory`."""

    def __init__(self, method: Iterates, steps: int) -> None:
        super().__init__()
        self.method, self.iterates = method, steps

    def forward(self, prompt: Any) -> Tensor:
        """The last iterate (B, 1, N)."""
        return self.trajectory(prompt)[:, -1:]

    def trajectory(self, prompt: Any) -> Tensor:
        """The iterates x₀, …, x_steps, (B, steps + 1, N)."""
        iterates = self.method(system_of(prompt), self.iterates)
        return torch.stack([x[..., 0] for x in iterates], dim=1)


class Richardson(SystemSolver):
    """x ← x + α(b − Ax) with α = 2/(λmin + λmax) for each prompt's A."""

    name = "richardson"

    def iterates(self, system: System, steps: int) -> Iterator[Tensor]:
        """See `SystemSolver.iterates`."""
        low, high = system.extremes()
        x = system.x0
        yield x
        for _ in range(steps):
            # This α makes |1 − αλ| equal at both extremes, which minimizes its largest value.
            x = x + 2.0 / (low + high) * system.residual(x)
            yield x


class Chebyshev(SystemSolver):
    """The Chebyshev iteration on [λmin, λmax] of each prompt's A.

    After every step, its polynomial has the smallest worst-case error of its degree (Saad,
    Iterative Methods for Sparse Linear Systems, Alg. 12.1).
    """

    name = "chebyshev"

    def iterates(self, system: System, steps: int) -> Iterator[Tensor]:
        """See `SystemSolver.iterates`."""
        low, high = system.extremes()
        middle, radius = (high + low) / 2.0, (high - low) / 2.0
        x = system.x0
        yield x
        direction = torch.zeros_like(x)
        for k in range(steps):
            residual = system.residual(x)
            if k == 0:
                direction, ratio = residual / middle, radius / middle
            else:
                below = 2.0 * middle - ratio * radius
                # A three-term recurrence, since varying step sizes are stable in some orders only.
                direction = ratio * radius / below * direction + 2.0 / below * residual
                ratio = radius / below
            x = x + direction
            yield x


class JacobiConfig(IterationsConfig):
    """The number of iterations, and their damping."""

    damping: float | None = Field(
        None,
        gt=0,
        description="ω, damping factor; null: 2/(λmin + λmax) of D⁻¹A for each prompt, which "
        "always converges; 1: the plain iteration, which converges only if 2D − A is positive "
        "definite",
    )


class Jacobi(SystemSolver):
    """x ← x + ωD⁻¹(b − Ax), D the diagonal of A (Saad, ch. 4)."""

    name = "jacobi"
    Config = JacobiConfig

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module without parameters that also provides its iterates."""
        return IterationModule(partial(self.iterates, damping=config.damping), config.steps)

    def iterates(
        self, system: System, steps: int, damping: float | None = None
    ) -> Iterator[Tensor]:
        """See `SystemSolver.iterates`."""
        diagonal = system.a.diagonal(dim1=1, dim2=2).unsqueeze(2)
        size: float | Tensor
        if damping is None:
            # D⁻½AD⁻½ is symmetric and has the eigenvalues of D⁻¹A.
            root = diagonal.sqrt()
            low, high = system._replace(a=system.a / (root * root.mT)).extremes()
            size = 2.0 / (low + high)
        else:
            size = damping
        x = system.x0
        yield x
        for _ in range(steps):
            x = x + size * system.residual(x) / diagonal
            yield x


class SteepestDescent(SystemSolver):
    """Gradient descent on ½xᵀAx − bᵀx with exact line search: α = rᵀr / rᵀAr."""

    name = "steepest-descent"

    def iterates(self, system: System, steps: int) -> Iterator[Tensor]:
        """See `SystemSolver.iterates`."""
        x = system.x0
        yield x
        for _ in range(steps):
            # Recomputed, because an updated residual drifts from b − Ax by rounding.
            r = system.residual(x)
            x = x + _quotient(_dot(r, r), _dot(r, system.a @ r)) * r
            yield x


def conjugate_gradient(system: System, steps: int) -> Iterator[Tensor]:
    """Conjugate gradients from x₀ (Hestenes and Stiefel)."""
    x = system.x0
    yield x
    r = direction = system.residual(x)
    size = _dot(r, r)
    # A residual below this no longer changes x; further steps would underflow.
    negligible = torch.finfo(r.dtype).eps ** 4 * size
    for _ in range(steps):
        image = system.a @ direction
        active = size > negligible
        step = torch.where(active, _quotient(size, _dot(direction, image)), 0)
        x = x + step * direction
        r = r - step * image
        size, before = _dot(r, r), size
        direction = r + torch.where(active, _quotient(size, before), 0) * direction
        yield x


def newton(system: System, steps: int) -> Iterator[Tensor]:
    """Newton–Schulz: X ← 2X − XAX from A/λmax², applied to the first residual."""
    _, high = system.extremes()
    # All eigenvalues of X·A then lie in [0, 1], where the iteration converges.
    inverse = system.a / high.square()
    first = system.residual(system.x0)
    yield system.x0
    for _ in range(steps):
        inverse = 2.0 * inverse - inverse @ system.a @ inverse
        # The residual is that of x₀: only the approximate inverse changes.
        yield system.x0 + inverse @ first


class Cholesky(Solver):
    """The solution by Cholesky factorization, N³/6 multiply-adds.

    NaN where the matrix is not positive definite to the dtype's precision.
    """

    name = "cholesky"

    def supports(self, signature: Signature, config: Config) -> str | None:
        """See `supports_systems`."""
        return supports_systems(signature)

    def build(self, signature: Signature, config: Config) -> nn.Module:
        """A module without parameters."""
        return _CholeskyModule()


class _CholeskyModule(nn.Module):
    def forward(self, prompt: Any) -> Tensor:
        system = system_of(prompt)
        factor, failed = torch.linalg.cholesky_ex(system.a)
        solution = torch.cholesky_solve(system.b, factor)
        # (B, N, 1) → (B, 1, N); x₀ is not used.
        return solution.mT.masked_fill(failed[:, None, None] > 0, torch.nan)


def _dot(u: Tensor, v: Tensor) -> Tensor:
    return (u * v).sum(dim=1, keepdim=True)


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """a/b, and 0 where b = 0, so that a converged iteration stays where it is."""
    return torch.where(b > 0, a / torch.where(b > 0, b, 1), 0)
