"""Direct solvers: least squares by QR and by Cholesky, and ridge regression."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Config

from .solver import Examples, LinearSolver


class LeastSquaresQR(LinearSolver):
    """The minimizer of ‖Xw − y‖ with the least norm, by QR or LQ (LAPACK's gels).

    A batch with a prompt that has not full rank is solved by QR with pivoting (gelsy). It always
    runs on the CPU, since gels on GPUs needs at least as many examples as dimensions.
    """

    name = "least-squares-qr"

    def weights(self, examples: Examples, config: Config) -> Tensor:
        """w (B, D, K)."""
        # QR and not the normal equations, which square the condition number.
        x, y = examples.x.cpu(), examples.y.cpu()
        try:
            solution: Tensor = torch.linalg.lstsq(x, y, driver="gels").solution
        except RuntimeError:  # LAPACK found a prompt without full rank
            solution = torch.linalg.lstsq(x, y, driver="gelsy").solution
        return solution.to(examples.x.device)


class CholeskyConfig(Config):
    """The number of refinements."""

    refinements: int = Field(1, ge=0, description="corrections by the residual y − Xw")


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
        description="λ of ‖Xw − y‖² + λ‖w‖², no 1/N; null: the prompt's, or 0.01 without one",
    )


class Ridge(LinearSolver):
    """(XᵀX + λI)⁻¹Xᵀy by Cholesky, from the smaller of the two Gram matrices."""

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
        factor = torch.linalg.cholesky(gram + ridge * identity)
        if wide:
            return x.mT @ torch.cholesky_solve(y, factor)
        return torch.cholesky_solve(x.mT @ y, factor)
