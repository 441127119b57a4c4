"""The configuration of `ode-operator`."""

from __future__ import annotations

from pydantic import Field

from iclbench import TaskConfig

from .equations import Equation


class OdeConfig(TaskConfig):
    """The equation, its coefficients, and the functions that drive it."""

    equation: Equation = Field(
        "forced",
        description="full: u' = a1 c + a2 c u + a3 u + a4 (class 0); forced: a2 = 0 (class 1); "
        "modulated: a1 = 0 (class 2); second-order: u'' = a1 c + a2 u' + a3 u + a4, u'(0) = 0",
    )
    examples: int = Field(24, ge=1, description="N, examples in the context")
    points: int = Field(21, ge=2, le=41, description="equispaced points at which c is shown")
    # Below it, degree 40 does not resolve c; above, products are nearly constant.
    gp_length: float = Field(
        0.1, ge=0.05, le=4, description="ℓ of the covariance exp(−(s − t)²/2ℓ) of c"
    )
    scale: float = Field(
        1.0, ge=0, le=2, description="s: a3, a4 ~ U(−s, s); a1, a2 ~ U(1 − s/2, 1 + s/2)"
    )
    u0_scale: float = Field(1.0, ge=0, le=10, description="u(0) ~ U(−u0_scale, u0_scale)")

    @property
    def features(self) -> int:
        """The width of an example without its value: c, u(0) and 1."""
        return self.points + 2
