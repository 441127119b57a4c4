"""The task `ridge`: what ridge regression predicts for a new input (Hagiwara, 3.1)."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import (
    Batch,
    Distance,
    Draws,
    FloorKind,
    Primary,
    Random,
    Ridge,
    Shift,
    Signature,
    exact_least_squares,
)

from .base import LeastSquaresTask
from .problems import LeastSquaresConfig, problems_from

Penalty = Annotated[float, Field(ge=0)]

#: The largest condition number without a penalty: the normal equations square it.
MOST_ILL_CONDITIONED = 1e6
#: Matrices whose eigenvalues are computed at once: cuSOLVER refuses some 32,000.
AT_ONCE = 8192


class RidgeConfig(LeastSquaresConfig):
    """The problems, and the penalty and step size shown in the prompt."""

    # Its square is the default λ: the estimate is then the posterior mean under w* ~ N(0, I).
    noise: float = Field(0.5, ge=0, description="standard deviation of the noise on y")
    ridge: Penalty | tuple[Penalty, Penalty] = Field(
        0.25, description="λ, the penalty; [low, high]: drawn log-uniformly for each prompt"
    )
    step: Annotated[float, Field(gt=0)] | Literal["optimal"] = Field(
        "optimal",
        description="η, the step size in the prompt; optimal: 2/(λmin + λmax) of XᵀX + λI, where "
        "λmin is the smallest eigenvalue in the row space of X",
    )

    @model_validator(mode="after")
    def _has_an_answer(self) -> RidgeConfig:
        if isinstance(self.ridge, tuple) and not 0 < self.ridge[0] <= self.ridge[1]:
            raise ValueError("ridge=[low, high] needs 0 < low <= high")
        if self.ridge == 0 and self.examples < self.dim:
            raise ValueError("ridge=0 needs at least as many examples as dimensions")
        if self.ridge == 0 and (self.condition_number or 1.0) > MOST_ILL_CONDITIONED:
            raise ValueError(
                f"ridge=0 needs a condition_number of at most {MOST_ILL_CONDITIONED:g}, since "
                "training targets come from the normal equations"
            )
        return self


class RidgeRegression(LeastSquaresTask[RidgeConfig]):
    """Predict uᵀŵ, ŵ = (XᵀX + λI)⁻¹Xᵀy, from X, y, λ and a new input u (Hagiwara, eqs. 31–33).

    The prompt also shows the step size η of gradient descent on that objective (eqs. 35–36; no
    1/N). Tokens are (xᵢ, yᵢ), then (λ, η, 0, …), and last (u, 0): S = N + 2, d = D + 1, read at the
    last token. The answer is a function of the prompt, so targets follow from its rounded numbers.
    """

    name = "ridge"
    version = 2
    Config = RidgeConfig
    replica_args = LeastSquaresTask.replica_args | {"ridge", "step"}
    errors = {"squared_error": "squared", "clean_error": "squared"}
    floor_summary = (
        "The ridge estimate of the rounded prompt, solved exactly. For `clean_error`, the floor is "
        "the error of this estimate; with λ = σ² it is that of the Bayes predictor."
    )

    @property
    def floor_kind(self) -> FloorKind:
        """`exact`: the rounded prompt determines the estimate."""
        return "exact"

    @property
    def primary(self) -> Primary:
        """The squared distance to the estimator's prediction."""
        return Primary("squared_error")

    @property
    def shifts(self) -> dict[str, Shift]:
        """Those of regression; without a penalty, the examples must determine the estimate.

        Nor is the optimal step defined in a subspace: rounding decides the smallest eigenvalue.
        """
        shifts, c = super().shifts, self.config
        left_out = {"half-subspace"} if c.step == "optimal" or c.ridge == 0 else set()
        if c.ridge == 0:
            left_out |= self.few_signs | ({"examples-half"} if c.examples // 2 < c.dim else set())
        return {name: shift for name, shift in shifts.items() if name not in left_out}

    @property
    def signature(self) -> Signature:
        """S = N + 2 tokens of width D + 1, read at the last."""
        c = self.config
        return Signature(
            prompt=Ridge,
            target="query",
            length=c.examples + 2,
            input_width=c.dim + 1,
            output_width=1,
            readout=(c.examples + 1,),
            shapes={**self.shapes(), "ridge": (), "step": ()},
        )

    def draw(self, random: Random) -> Draws:
        """The problems, and ridge, the penalties λ (B,)."""
        return {**super().draw(random), "ridge": self._penalties(random.uniform("ridge"))}

    def _penalties(self, uniform: Tensor) -> Tensor:
        """λ of each prompt, (B,), from uniform draws."""
        if not isinstance(self.config.ridge, tuple):
            return torch.full_like(uniform, self.config.ridge)
        low, high = self.config.ridge
        # Log-uniform: λ is a scale.
        penalties: Tensor = low * (high / low) ** uniform
        return penalties

    def _step(self, x: Tensor, ridge: Tensor) -> Tensor:
        """η of each prompt, (B,), from x (B, N, D) and ridge (B,); see `RidgeConfig.step`."""
        if self.config.step != "optimal":
            return torch.full_like(ridge, self.config.step)
        # Gradient descent from 0 stays in the row space, where no eigenvalue is 0.
        gram = x @ x.mT if x.shape[1] < x.shape[2] else x.mT @ x
        values = torch.cat([torch.linalg.eigvalsh(part) for part in torch.split(gram, AT_ONCE)])
        step: Tensor = 2.0 / (values[:, 0] + values[:, -1] + 2.0 * ridge)
        return step

    def arrange(self, draws: Draws) -> Batch:
        """Tokens (B, N+2, D+1); the target is computed in float64, in training too."""
        problems, ridge = problems_from(self.config, draws), draws["ridge"]
        x, query = problems.x[:, :-1], problems.x[:, -1:]
        step = self._step(x, ridge)
        rows = problems.rows()
        # λ and η have a token of their own, so a sequence model sees what eqs. 35–36 use.
        facts = torch.stack([ridge, step], dim=1)
        facts = torch.nn.functional.pad(facts, (0, rows.shape[2] - 2))
        tokens = torch.cat([rows[:, :-1], facts[:, None], rows[:, -1:]], dim=1)
        # The normal equations square the condition number, and a target's error would be learned.
        exact = (field.double() for field in (x, problems.y, ridge))
        # Rounded last, to the run's dtype.
        target = (query.double() @ ridge_estimate(*exact)).to(query)
        prompt = Ridge(tokens, x, problems.y, query, ridge, step)
        return Batch(prompt, target, {"clean": problems.clean[:, -1:]})

    def answer(self, batch: Batch) -> Tensor:
        """The estimate for the rounded prompt, solved exactly."""
        p: Ridge = batch.prompt
        # The rounded λ, which is part of the prompt.
        return exact_least_squares(p.x, p.y, query=p.query, ridge=p.ridge)

    def exact_answer(self, batch: Batch) -> Tensor:
        """The target: the rounded prompt determines it."""
        return batch.target

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """squared_error, to the estimator's prediction, and clean_error, to w*ᵀu; both (B,)."""
        return {
            "squared_error": (prediction - batch.target)[:, 0, 0].square(),
            "clean_error": (prediction - batch.truth["clean"])[:, 0, 0].square(),
        }

    def errors_at(self, batch: Batch, distance: Distance) -> dict[str, Tensor]:
        """See `Task`; clean_error is measured against w*ᵀu."""
        clean = distance(batch.truth["clean"])[:, 0, 0].square()
        return super().errors_at(batch, distance) | {"clean_error": clean}


def ridge_estimate(x: Tensor, y: Tensor, ridge: Tensor) -> Tensor:
    """ŵ (B, D, 1) = (XᵀX + λI)⁻¹Xᵀy by Cholesky, from x (B, N, D), y (B, N, 1), ridge (B,).

    NaN where the matrix is not positive definite to the dtype's precision.
    """
    identity = torch.eye(x.shape[2], dtype=x.dtype, device=x.device)
    factor, failed = torch.linalg.cholesky_ex(x.mT @ x + ridge[:, None, None] * identity)
    # `cholesky_ex` does not raise: one singular prompt must not end a batch.
    solution: Tensor = torch.cholesky_solve(x.mT @ y, factor)
    return solution.masked_fill(failed[:, None, None] > 0, torch.nan)
