"""Direct solvers: least squares by QR and by Cholesky, and ridge regression."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Config

from .solver import Examples, LinearSolver


class LeastSquaresQR(LinearSolver):
    """The minimizer of ‖Xw − y‖ with the least norm, by QR or LQ (LAPACK's gels).

    A prompt whose X has not full rank to the dtype's precision is solved by singular values
    (gelsd). It always runs on the CPU, since gels on GPUs needs at least as many examples as
    dimensions.
    """

    name = "least-squares-qr"

    def weights(self, examples: Examples, config: Config) -> Tensor:
        """w (B, D, K)."""
        # QR and not the normal equations, which square the condition number.
        x, y = examples.x.cpu(), examples.y.cpu()
        deficient = _is_rank_deficient(x)
        if not deficient.any():
            solution: Tensor = torch.linalg.lstsq(x, y, driver="gels").solution
            return solution.to(examples.x.device)
        solution = x.new_empty(len(x), x.shape[2], y.shape[2])
        for rows, driver in ((~deficient, "gels"), (deficient, "gelsd")):
            solution[rows] = torch.linalg.lstsq(x[rows], y[rows], driver=driver).solution
        return solution.to(examples.x.device)


def _is_rank_deficient(x: Tensor) -> Tensor:
    """Which matrices of (B, N, D) have a singular value that is 0 to the dtype's precision, (B,).

    Gels notices only an exact 0 on the diagonal of its factor. The factor of the smaller Gram
    matrix, which squares the condition number, finds the few of which singular values are needed.
    """
    gram = x @ x.mT if x.shape[1] < x.shape[2] else x.mT @ x
    factor, failed = torch.linalg.cholesky_ex(gram)
    diagonal = factor.diagonal(dim1=1, dim2=2)
    eps = torch.finfo(x.dtype).eps
    is_suspect = (failed > 0) | (diagonal.amin(dim=1) < 10 * eps**0.5 * diagonal.amax(dim=1))
    is_deficient = torch.zeros_like(is_suspect)
    if is_suspect.any():
        values = torch.linalg.svdvals(x[is_suspect])
        is_deficient[is_suspect] = values[:, -1] <= max(x.shape[1:]) * eps * values[:, 0]
    return is_deficient


class CholeskyConfig(Config):
    """The number of refinements."""

    refinements: int = Field(1, ge=0, description="number of corrections by the residual y − Xw")


class LeastSquaresCholesky(LinearSolver):
    """The minimizer of ‖Xw − y‖ with the least norm, by Cholesky and corrections by its residual.

    The factor is that of the smaller of XᵀX and XXᵀ. NaN where the matrix is not positive definite
    to the dtype's precision.
    """

    name = "least-squares-cholesky"
    Config = CholeskyConfig

    def weights(self, examples: Examples, config: CholeskyConfig) -> Tensor:
        """w (B, D, K)."""
        x, y = examples.x, examples.y
        # Of the two Gram matrices only the smaller can be positive definite.
        wide = x.shape[1] < x.shape[2]
        factor, failed = torch.linalg.cholesky_ex(x @ x.mT if wide else x.mT @ x)

        def solve(residual: Tensor) -> Tensor:
            if wide:
                return x.mT @ torch.cholesky_solve(residual, factor)
            solution: Tensor = torch.cholesky_solve(x.mT @ residual, factor)
            return solution

        w = solve(y)
        for _ in range(config.refinements):
            # The residual is computed from X, whose condition number is not squared.
            w = w + solve(y - x @ w)
        return w.masked_fill(failed[:, None, None] > 0, torch.nan)


class RidgeConfig(Config):
    """The penalty."""

    ridge: float | None = Field(
        None,
        gt=0,
        description="λ of ‖Xw − y‖² + λ‖w‖², without 1/N; null: the λ of the prompt, or 0.01 if it "
        "has none",
    )


class Ridge(LinearSolver):
    """(XᵀX + λI)⁻¹Xᵀy by Cholesky, from the smaller of the two Gram matrices.

    NaN where the matrix is not positive definite to the dtype's precision.
    """

    name = "ridge"
    Config = RidgeConfig

    def weights(self, examples: Examples, config: RidgeConfig) -> Tensor:
        """w (B, D, K)."""
        x, y = examples.x, examples.y
        default = 1e-2 if examples.ridge is None else examples.ridge
        ridge = default if config.ridge is None else config.ridge
        # (XᵀX + λI)⁻¹Xᵀ = Xᵀ(XXᵀ + λI)⁻¹: the smaller matrix is cheaper.
        wide = x.shape[1] < x.shape[2]
        gram = x @ x.mT if wide else x.mT @ x
        identity = torch.eye(gram.shape[-1], dtype=x.dtype, device=x.device)
        factor, failed = torch.linalg.cholesky_ex(gram + ridge * identity)
        if wide:
            w = x.mT @ torch.cholesky_solve(y, factor)
        else:
            w = torch.cholesky_solve(x.mT @ y, factor)
        return w.masked_fill(failed[:, None, None] > 0, torch.nan)
