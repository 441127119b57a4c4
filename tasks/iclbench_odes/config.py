"""The configuration of `ode-operator`."""

from __future__ import annotations

from pydantic import Field, model_validator

from iclbench import TaskConfig

from .equations import Equation


class OdeConfig(TaskConfig):
    """The equation, its coefficients, and the functions that drive it."""

    equation: Equation = Field(
        "forced",
        description="full: u' = a1 c + a2 c u + a3 u + a4; forced: full with a2 = 0; modulated: "
        "full with a1 = 0; second-order: u'' = a1 c + a2 u' + a3 u + a4 with u'(0) = 0",
    )
    examples: int = Field(24, ge=1, description="N, number of examples in the context")
    points: int = Field(
        21, ge=2, le=41, description="number of equispaced points at which c is shown"
    )
    # At it, degree 40 resolves c to 1e-6; below it, no more. Above, products are nearly constant.
    gp_length: float = Field(
        0.1,
        ge=0.05,
        le=4,
        description="ℓ, squared length scale of c, whose covariance is exp(−(s − t)²/2ℓ)",
    )
    scale: float = Field(
        1.0,
        ge=0,
        le=2,
        description="s, range of the coefficients: a3, a4 ~ U(−s, s); a1, a2 ~ U(1 − s/2, "
        "1 + s/2), but a2 ~ U(−s, s) in second-order",
    )
    u0_scale: float = Field(
        1.0, ge=0, le=10, description="range of the initial values: u(0) ~ U(−u0_scale, u0_scale)"
    )

    @model_validator(mode="after")
    def _has_a_solution_to_learn(self) -> OdeConfig:
        if self.equation == "modulated" and self.scale == self.u0_scale == 0:
            raise ValueError("scale=0 and u0_scale=0 leave modulated no solution but u = 0")
        return self

    @property
    def features(self) -> int:
        """The width of an example without its value: c, u(0) and 1."""
        return self.points + 2
