"""The task `gradient-steps`: gradient descent by several steps (Liu et al., D.2.5)."""

from __future__ import annotations

from flint import arb_mat
from pydantic import Field
from torch import Tensor

from iclbench import Batch, FloorKind, Signature

from .descent import Descent, DescentConfig, DescentTask, exact_gradient


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
