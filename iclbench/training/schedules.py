"""Learning-rate schedules, as a factor of the step."""

from __future__ import annotations

import math

from ..recipes import Recipe


def learning_rate_factor(recipe: Recipe, step: int) -> float:
    """The factor on the learning rate at `step`, counted from 0.

    `step` is torch's StepLR, `cosine` its CosineAnnealingLR down to 0 at the last step.
    """
    factor = 1.0
    if recipe.schedule == "step":
        factor = recipe.decay ** (step // recipe.decay_every)
    elif recipe.schedule == "cosine":
        factor = 0.5 * (1.0 + math.cos(math.pi * step / recipe.steps))
    if step < recipe.warmup:
        factor *= (step + 1) / recipe.warmup
    return factor
