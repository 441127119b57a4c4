"""The metric `krylov`: which polynomial of A does each layer of a model apply to b?"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.polynomial import chebyshev
from torch import nn

from iclbench import (
    Batch,
    EvaluationContext,
    Metric,
    ShowsIterates,
    Task,
    map_tensors,
    offers,
    predict,
    torch_generator,
    training_batch,
)

#: Fresh training prompts that polynomials are fitted to.
PROMPTS = 1024
#: Largest degree whose misfit is given, and how much more a lower degree may leave to be taken.
DEGREE, AS_GOOD = 15, 1.05
TINY = np.finfo(np.float64).tiny
#: Points of the spectrum at which residual polynomials are given.
POINTS = 33


class Krylov(Metric):
    """What each layer computes, as `analyses.krylov` of a record: one entry a layer.

    On fresh training prompts x_l − x₀ is fitted by p(A)(b − Ax₀), one polynomial p for all prompts.
    `misfit` is the share of it that each degree 0…15 leaves, `degree` the smallest that leaves next
    to no more than the best, and `residual_polynomial` 1 − λp(λ) of that degree on `eigenvalues`:
    0 there solves exactly. `error` is the layer's median ‖x_l − x‖²/N. Beside it stand the error
    and the residual polynomial of as many iterations of Chebyshev (`chebyshev_…`), of the one
    polynomial of degree l − 1 with the least mean error on these prompts (`best_…`), and of
    conjugate gradients (`cg_…`), whose polynomial is another for each prompt: the median.
    """

    name = "krylov"

    def supports(self, task: Task[Any]) -> str | None:
        """Linear systems."""
        missing = {"a", "b", "x0", "size"} - set(getattr(task.signature.prompt, "_fields", ()))
        if missing or task.signature.target != "solution":
            return "it needs a task that asks for the solution of linear systems"
        return None

    def supports_model(self, model: nn.Module) -> str | None:
        """Support models with an estimate after every layer."""
        return None if offers(model, ShowsIterates) else "it shows no trajectory"

    def analysis(
        self, model: nn.Module, task: Task[Any], batches: list[Batch], context: EvaluationContext
    ) -> dict[str, Any]:
        """See the class."""
        dtype = batches[0].prompt.a.dtype
        fresh = training_batch(task, PROMPTS, torch_generator("cpu", "krylov"), dtype)
        estimates = predict(cast(Any, model).trajectory, fresh.prompt, context).numpy()
        count = estimates.shape[1]
        systems = Systems(fresh, max(DEGREE, count))
        layers = [systems.describe(estimates[:, index], index) for index in range(1, count)]
        return {"eigenvalues": systems.points.tolist(), "layers": layers}


class Systems:
    """Systems in their eigenbasis, float64: eigenvalues, r₀ = b − Ax₀, and e₀ = x − x₀, (B, N)."""

    def __init__(self, batch: Batch, degree: int) -> None:
        """`degree` is the largest that can be fitted."""
        # The misfit is a square: below this it is the rounding of the estimates.
        self.rounding = 100.0 * torch.finfo(batch.prompt.a.dtype).eps ** 2
        prompt = map_tensors(lambda t: t.cpu(), batch.prompt)
        a, b, x0 = (t.double() for t in (prompt.a, prompt.b, prompt.x0))
        values, basis = torch.linalg.eigh(a)
        self.basis, self.sizes = basis.numpy(), prompt.size.numpy()
        self.start = x0.numpy()
        x = batch.target[:, 0].double().nan_to_num().numpy()
        self.values = values.numpy()
        # Padding has the eigenvalue 0, and no part in b.
        exists = self.values > 0
        self.low, self.high = self.values[exists].min(), self.values[exists].max()
        self.first = self._rotated(b.numpy() - np.einsum("bij,bj->bi", a.numpy(), self.start))
        self.error = self._rotated(x - self.start)
        self.points = np.linspace(self.low, self.high, POINTS)
        self._columns = chebyshev.chebvander(self._scaled(self.values), degree)

    def describe(self, estimate: np.ndarray, layer: int) -> dict[str, Any]:
        """One layer's entry, from its estimate (B, N)."""
        moved = self._rotated(estimate - self.start)
        if not np.isfinite(np.square(moved).sum()):
            return {"error": None}
        misfits, fits = [], []
        for degree in range(DEGREE + 1):
            found = self._fit(moved, degree)
            fits.append(found)
            left = moved - self._applied(found)
            misfit = float(np.square(left).sum() / max(np.square(moved).sum(), TINY))
            misfits.append(max(misfit, self.rounding))
        degree = int(np.argmax(np.asarray(misfits) <= AS_GOOD * min(misfits)))
        best = self._fit(self.error, layer - 1, weights=1.0 / np.sqrt(self.sizes))
        iterate, polynomial = self._conjugate_gradient(layer)
        return {
            "misfit": misfits,
            "degree": degree,
            "residual_polynomial": self._residual(fits[degree]),
            "error": self._median(self.error - moved),
            "chebyshev_error": self._median(self.error * self._chebyshev(self.values, layer)),
            "chebyshev_polynomial": self._chebyshev(self.points, layer).tolist(),
            "best_error": self._median(self.error - self._applied(best)),
            "best_polynomial": self._residual(best),
            "cg_error": self._median(self.error - iterate),
            "cg_polynomial": polynomial.tolist(),
        }

    def _rotated(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("bij,bi->bj", self.basis, v))

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        """[λmin, λmax] as [−1, 1]."""
        width = max(self.high - self.low, TINY)
        return np.asarray((2.0 * values - self.high - self.low) / width)

    def _fit(self, moved: np.ndarray, degree: int, weights: np.ndarray | None = None) -> np.ndarray:
        """Coefficients, in Chebyshev's basis, of the p that fits moved ≈ p(λ)r₀ best.

        `weights` (B,) are those of the systems' errors.
        """
        rows = self._columns[..., : degree + 1] * self.first[..., None]
        if weights is not None:
            rows, moved = rows * weights[:, None, None], moved * weights[:, None]
        rows = rows.reshape(-1, degree + 1)
        return np.asarray(np.linalg.lstsq(rows, moved.reshape(-1), rcond=None)[0])

    def _applied(self, fitted: np.ndarray) -> np.ndarray:
        return np.asarray((self._columns[..., : len(fitted)] @ fitted) * self.first)

    def _residual(self, fitted: np.ndarray) -> list[float]:
        """1 − λp(λ) at the points."""
        values = 1.0 - self.points * chebyshev.chebval(self._scaled(self.points), fitted)
        return [float(v) for v in values]

    def _chebyshev(self, values: np.ndarray, degree: int) -> np.ndarray:
        """T_l scaled to 1 at λ = 0, Chebyshev's residual polynomial."""
        top = np.zeros(degree + 1)
        top[degree] = 1.0
        at_zero = chebyshev.chebval(self._scaled(np.zeros(1)), top)
        return np.asarray(chebyshev.chebval(self._scaled(values), top) / at_zero)

    def _conjugate_gradient(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """x_steps − x₀ in the eigenbasis, (B, N), and the median residual polynomial."""
        x, r = np.zeros_like(self.first), self.first.copy()
        p = r.copy()
        at_points = np.ones((len(x), len(self.points)))
        along = at_points.copy()
        arrived = 1e-12 * np.square(r).sum(axis=1, keepdims=True)
        for _ in range(steps):
            size = np.square(r).sum(axis=1, keepdims=True)
            curvature = (self.values * p * p).sum(axis=1, keepdims=True)
            # A small system is solved early; steps along its rounding would mean nothing.
            step = np.divide(size, curvature, out=np.zeros_like(size), where=size > arrived)
            x, r = x + step * p, r - step * self.values * p
            at_points = at_points - step * self.points * along
            new = np.square(r).sum(axis=1, keepdims=True)
            share = np.divide(new, size, out=np.zeros_like(size), where=size > arrived)
            p, along = r + share * p, at_points + share * along
        return x, np.median(at_points, axis=0)

    def _median(self, error: np.ndarray) -> float:
        """The median of ‖error‖²/N."""
        return float(np.median(np.square(error).sum(axis=1) / self.sizes))
