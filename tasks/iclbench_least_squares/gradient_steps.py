"""The task `gradient-steps`: several steps of gradient descent (`multistep_gd` of precision-ls)."""

from __future__ import annotations

from flint import arb_mat
from pydantic import Field
from torch import Tensor

from iclbench import Batch, FloorKind, Shift, Signature

from .descent import Descent, DescentConfig, DescentTask, exact_gradient

#: Shifts of the query, which here no token shows and no metric measures.
QUERY_SHIFTS = frozenset({"opposite-quadrants", "orthogonal", "overlapping"})


class StepsConfig(DescentConfig):
    """The number of steps."""

    steps: int = Field(4, ge=1, description="k, number of gradient steps from w₀")


class GradientSteps(DescentTask[StepsConfig]):
    """Predict w_k, k steps of gradient descent from w₀, with the step size of the configuration."""

    name = "gradient-steps"
    version = 2
    Config = StepsConfig
    floor_summary = "The k gradient steps on the rounded prompt, computed exactly."

    @property
    def floor_kind(self) -> FloorKind:
        """`exact`: the rounded prompt determines the answer."""
        return "exact"

    @property
    def signature(self) -> Signature:
        """See `describe_prompt`."""
        return self.describe_prompt("weights")

    @property
    def shifts(self) -> dict[str, Shift]:
        """Those of regression, without `QUERY_SHIFTS`."""
        return {name: shift for name, shift in super().shifts.items() if name not in QUERY_SHIFTS}

    def solve(self, prompt: Descent) -> Tensor:
        """w_k."""
        w = prompt.w
        for _ in range(self.config.steps):
            w = w - self.config.step_size * prompt.gradient(w)
        return w

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """squared_error, the mean over the D components of w_k, (B,)."""
        return {"squared_error": (prediction - batch.target).square().mean(dim=(1, 2))}

    def solve_exactly(self, x: arb_mat, y: arb_mat, w: arb_mat) -> arb_mat:
        """w_k, D × 1."""
        for _ in range(self.config.steps):
            w = w - exact_gradient(x, y, w) * self.config.step_size
        return w
