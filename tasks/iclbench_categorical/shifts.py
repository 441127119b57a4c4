"""Evaluation under shift for the categorical tasks: noisy labels, other scales, other kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import torch

from iclbench import Draws, Random, Shift

#: The probability that the label of an example is drawn again, uniformly from all classes.
NOISY = 0.2


def label_shift(examples: int, classes: int) -> Shift:
    """Each label of an example redrawn with probability 0.2; those of the queries stay."""

    def change(draws: Draws, random: Random) -> Draws:
        chosen = random.uniform("noisy", examples) < NOISY
        labels = random.integers("label", classes, examples)
        # −1 keeps the label that follows from the other draws.
        return {**draws, "relabelled": torch.where(chosen, labels, -1)}

    return Shift(f"each example's label redrawn with probability {NOISY:g}", change=change)


def scale_shifts() -> dict[str, Shift]:
    """Inputs multiplied by 0.5 and by 2."""
    return {
        f"inputs-{name}": Shift(f"inputs multiplied by {factor:g}", change=_times(factor))
        for name, factor in {"half": 0.5, "double": 2.0}.items()
    }


def kernel_shifts(kernels: Any, kernel: str) -> dict[str, Shift]:
    """The kernels of a Literal other than the one that is trained on."""
    return {
        f"kernel-{name}": Shift(f"a {name} kernel", {"kernel": name})
        for name in get_args(kernels)
        if name != kernel
    }


def _times(factor: float) -> Callable[[Draws, Random], Draws]:
    return lambda draws, random: {**draws, "x": factor * draws["x"]}
