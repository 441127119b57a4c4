"""Evaluation under shift: other spectra, condition numbers, sizes and scales than in training."""

from __future__ import annotations

from typing import get_args

from iclbench import Shift

from .config import LinearSystemConfig
from .spectra import Spectrum


def system_shifts(config: LinearSystemConfig) -> dict[str, Shift]:
    """The shifts that are defined for a configuration, by name."""
    largest = max(config.evaluate or config.sizes)
    # A spectrum says how eigenvalues lie between the extremes.
    between = largest > 2 and config.condition_number > 1
    shifts = {
        f"spectrum-{spectrum}": Shift(f"{spectrum} eigenvalues", {"spectrum": spectrum})
        for spectrum in get_args(Spectrum)
        if spectrum != config.spectrum and between
    }
    for times in (10, 100):
        number = times * config.condition_number
        # The limit of the configuration.
        if number <= 1e12:
            shifts[f"condition-times-{times}"] = Shift(
                f"condition number {number:g}", {"condition_number": number}
            )
    for name, factor in {"half": 0.5, "double": 2.0}.items():
        if 1e-6 <= factor * config.scale <= 1e6:
            shifts[f"scale-{name}"] = Shift(
                f"A and b multiplied by {factor:g}", {"scale": factor * config.scale}
            )
    sizes = {"size-half": max(2, largest // 2), "size-double": 2 * largest}
    for name, size in sizes.items():
        # A spectrum needs eigenvalues between the extremes, in training or here.
        has_room = config.spectrum == "log-uniform" or max((*config.sizes, size)) > 2
        if (size,) != config.evaluate and has_room:
            shifts[name] = Shift(f"systems of size {size}", {"evaluate": (size,)})
    return dict(sorted(shifts.items()))
