"""The metric `krylov`: the polynomial of A that each layer of a model applies to b."""

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

#: Number of fresh training prompts for the fits.
PROMPTS = 1024
#: Largest degree fitted.
MAX_DEGREE = 15
#: The degree reported is the lowest whose misfit is at most this multiple of the least.
TOLERANCE = 1.05
#: Number of eigenvalues at which residual polynomials are reported.
POINTS = 33
TINY = np.finfo(np.float64).tiny


class Krylov(Metric):
    """The polynomial of A that each layer l applies to the first residual b − Ax₀.

    Krylov methods for Ax = b do nothing else, so the fit shows which method a model has learned. On
    fresh training prompts, x_l − x₀ is fitted by p(A)(b − Ax₀) with one polynomial p for all
    prompts. Records hold it as `analyses.krylov`, one entry per layer:

    - `misfit`: the fraction of ‖x_l − x₀‖² that remains, for degrees 0…15
    - `degree`: the lowest degree whose misfit is within 5% of the least
    - `residual_polynomial`: 1 − λp(λ) of that degree at `eigenvalues`; 0 means an exact solution
    - `error`: the layer's median ‖x_l − x‖²/N

    Errors and residual polynomials are also given for l iterations of Chebyshev (`chebyshev_…`),
    for the polynomial of degree l − 1 with the least mean error on these prompts (`best_…`), and
    for l steps of conjugate gradients (`cg_…`), whose polynomial differs per prompt: the median.
    """

    name = "krylov"

    def supports(self, task: Task[Any]) -> str | None:
        """Accept tasks that ask for the solution of linear systems."""
        missing = {"a", "b", "x0", "size"} - set(getattr(task.signature.prompt, "_fields", ()))
        if missing or task.signature.target != "solution":
            return "it needs a task that asks for the solution of linear systems"
        return None

    def supports_model(self, model: nn.Module) -> str | None:
        """Accept models that give an estimate after every layer."""
        return None if offers(model, ShowsIterates) else "it has no estimates by layer"

    def analysis(
        self, model: nn.Module, task: Task[Any], batches: list[Batch], context: EvaluationContext
    ) -> dict[str, Any]:
        """See the class."""
        dtype = batches[0].prompt.a.dtype
        fresh = training_batch(task, PROMPTS, torch_generator("cpu", "krylov"), dtype)
        estimates = predict(cast(Any, model).trajectory, fresh.prompt, context).numpy()
        count = estimates.shape[1]
        systems = Systems(fresh, max(MAX_DEGREE, count))
        layers = [systems.describe(estimates[:, index], index) for index in range(1, count)]
        return {"eigenvalues": systems.points.tolist(), "layers": layers,
                "plots": _plots(len(layers))}  # fmt: skip


def _plots(layers: int) -> list[dict[str, Any]]:
    """What pages draw: errors by layer, misfits by degree, and each layer's polynomial."""
    kinds = {"": "model", "chebyshev_": "Chebyshev", "best_": "best polynomial",
             "cg_": "conjugate gradients"}  # fmt: skip
    errors = [{"name": name, "path": f"layers.*.{key}error"} for key, name in kinds.items()]
    misfits = [{"name": f"layer {i + 1}", "path": f"layers.{i}.misfit"} for i in range(layers)]
    plots: list[dict[str, Any]] = [
        {"title": "Error after each layer", "x": {"title": "layer"},
         "y": {"title": "median squared error", "log": True}, "lines": errors},
        # A list without a path for x is drawn from x = 1, which is degree 0 here.
        {"title": "Misfit of polynomials", "x": {"title": "degree + 1"},
         "y": {"title": "fraction that remains", "log": True}, "lines": misfits},
    ]  # fmt: skip
    for i in range(layers):
        lines = [
            {"name": name, "path": f"layers.{i}.{key or 'residual_'}polynomial"}
            for key, name in kinds.items()
        ]
        plots.append({
            "title": f"Residual polynomial of layer {i + 1}", "lines": lines,
            "x": {"title": "eigenvalue", "path": "eigenvalues"}, "y": {"title": "1 − λp(λ)"},
        })  # fmt: skip
    return plots


class Systems:
    """Linear systems in their eigenbases, float64; arrays are (B, N).

    `values` are the eigenvalues, `first` is r₀ = b − Ax₀ and `error` is e₀ = x − x₀.
    """

    def __init__(self, batch: Batch, degree: int) -> None:
        """Prepare fits up to `degree`."""
        # Misfits below this are rounding of the estimates; the misfit is a square, hence eps².
        self.rounding = 100.0 * torch.finfo(batch.prompt.a.dtype).eps ** 2
        prompt = map_tensors(lambda t: t.cpu(), batch.prompt)
        a, b, x0 = (t.double() for t in (prompt.a, prompt.b, prompt.x0))
        values, basis = torch.linalg.eigh(a)
        self.basis, self.sizes = basis.numpy(), prompt.size.numpy()
        self.start = x0.numpy()
        x = batch.target[:, 0].double().nan_to_num().numpy()
        # Eigenvalues ascend, and those of padding, 0, come first.
        exists = np.arange(a.shape[1]) >= a.shape[1] - self.sizes[:, None]
        self.low, self.high = values.numpy()[exists].min(), values.numpy()[exists].max()
        # At 0, far from a narrow spectrum, polynomials would overflow. Padding contributes nothing
        # to b, so that any eigenvalue will do.
        self.values = np.where(exists, values.numpy(), self.low)
        self.first = self._rotated(b.numpy() - np.einsum("bij,bj->bi", a.numpy(), self.start))
        self.error = self._rotated(x - self.start)
        self.points = np.linspace(self.low, self.high, POINTS)
        # Chebyshev's basis on the spectrum: monomials would be ill-conditioned at degree 15.
        self._columns = chebyshev.chebvander(self._scaled(self.values), degree)

    def describe(self, estimate: np.ndarray, layer: int) -> dict[str, Any]:
        """One layer's entry, from its estimate (B, N)."""
        moved = self._rotated(estimate - self.start)
        if not np.isfinite(np.square(moved).sum()):
            return {"error": None}
        misfits, fits = [], []
        for degree in range(MAX_DEGREE + 1):
            fits.append(self._fit(moved, degree))
            remainder = moved - self._applied(fits[-1])
            misfit = float(np.square(remainder).sum() / max(np.square(moved).sum(), TINY))
            misfits.append(max(misfit, self.rounding))
        # argmax gives the first True, that is, the lowest such degree.
        degree = int(np.argmax(np.asarray(misfits) <= TOLERANCE * min(misfits)))
        # Dividing by √N makes the fit minimize the mean of ‖error‖²/N.
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
        """v (B, N) in the eigenbases."""
        return np.asarray(np.einsum("bij,bi->bj", self.basis, v))

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        """Map [λmin, λmax] to [−1, 1]."""
        width = max(self.high - self.low, TINY)
        return np.asarray((2.0 * values - self.high - self.low) / width)

    def _fit(self, moved: np.ndarray, degree: int, weights: np.ndarray | None = None) -> np.ndarray:
        """Coefficients of the least-squares fit moved ≈ p(λ)r₀ in Chebyshev's basis.

        `weights` (B,) multiply the systems' errors.
        """
        rows = self._columns[..., : degree + 1] * self.first[..., None]
        if weights is not None:
            rows, moved = rows * weights[:, None, None], moved * weights[:, None]
        rows = rows.reshape(-1, degree + 1)
        return np.asarray(np.linalg.lstsq(rows, moved.reshape(-1), rcond=None)[0])

    def _applied(self, fitted: np.ndarray) -> np.ndarray:
        """p(λ)r₀, (B, N)."""
        return np.asarray((self._columns[..., : len(fitted)] @ fitted) * self.first)

    def _residual(self, fitted: np.ndarray) -> list[float]:
        """1 − λp(λ) at `points`."""
        values = 1.0 - self.points * chebyshev.chebval(self._scaled(self.points), fitted)
        return [float(v) for v in values]

    def _chebyshev(self, values: np.ndarray, degree: int) -> np.ndarray:
        """Chebyshev's residual polynomial: T_degree, scaled to 1 at λ = 0."""
        coefficients = np.zeros(degree + 1)
        coefficients[degree] = 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            at_zero = chebyshev.chebval(self._scaled(np.zeros(1)), coefficients)
        # Beside a spectrum of nearly one point it overflows, so that the quotient is 0.
        if not np.isfinite(at_zero).all():
            return np.zeros_like(values)
        return np.asarray(chebyshev.chebval(self._scaled(values), coefficients) / at_zero)

    def _conjugate_gradient(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """x − x₀ in the eigenbases after `steps`, (B, N), and the median residual polynomial."""
        x, r = np.zeros_like(self.first), self.first.copy()
        p = r.copy()
        # The polynomials of r and p at `points`, by the same recurrences.
        r_polynomial = np.ones((len(x), len(self.points)))
        p_polynomial = r_polynomial.copy()
        # A relative residual of 1e-14: nearer to rounding, the polynomials would follow it.
        solved = 1e-28 * np.square(r).sum(axis=1, keepdims=True)
        for _ in range(steps):
            size = np.square(r).sum(axis=1, keepdims=True)
            curvature = (self.values * p * p).sum(axis=1, keepdims=True)
            # Small systems are solved early; further steps would follow rounding errors.
            step = np.divide(size, curvature, out=np.zeros_like(size), where=size > solved)
            x, r = x + step * p, r - step * self.values * p
            r_polynomial = r_polynomial - step * self.points * p_polynomial
            new_size = np.square(r).sum(axis=1, keepdims=True)
            beta = np.divide(new_size, size, out=np.zeros_like(size), where=size > solved)
            p, p_polynomial = r + beta * p, r_polynomial + beta * p_polynomial
        return x, np.median(r_polynomial, axis=0)

    def _median(self, error: np.ndarray) -> float:
        """The median of ‖error‖²/N."""
        return float(np.median(np.square(error).sum(axis=1) / self.sizes))
