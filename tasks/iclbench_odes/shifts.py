"""Evaluation under shift: smoother and rougher functions, other coefficients, other equations."""

from __future__ import annotations

from typing import get_args

from iclbench import Shift

from .config import OdeConfig
from .equations import Equation

#: Bounds of gp_length and scale; see `OdeConfig`.
LENGTHS, LARGEST_SCALE = (0.05, 4.0), 2.0


def ode_shifts(c: OdeConfig) -> dict[str, Shift]:
    """The shifts that are defined for a configuration, by name. The prompts' shape stays."""
    shifts = {
        f"equation-{equation}": Shift(f"the equation {equation}", {"equation": equation})
        for equation in get_args(Equation)
        # Without coefficients and initial values, this equation has the solution 0 alone.
        if equation != c.equation and (equation != "modulated" or c.scale or c.u0_scale)
    }
    for name, factor in {"rougher": 0.5, "smoother": 2.0}.items():
        length = factor * c.gp_length
        if LENGTHS[0] <= length <= LENGTHS[1]:
            shifts[name] = Shift(
                f"c with squared length scale ℓ = {length:g}", {"gp_length": length}
            )
    for name, factor in {"half": 0.5, "double": 2.0}.items():
        if 0 < factor * c.scale <= LARGEST_SCALE:
            arguments = {"scale": factor * c.scale}
            shifts[f"coefficients-{name}"] = Shift(
                f"coefficients of scale s = {factor * c.scale:g}", arguments
            )
    if 0 < 2.0 * c.u0_scale <= 10:
        shifts["starts-double"] = Shift(
            f"initial values u(0) up to ±{2.0 * c.u0_scale:g}",
            {"u0_scale": 2.0 * c.u0_scale},
            scales_targets=True,
        )
    return dict(sorted(shifts.items()))
