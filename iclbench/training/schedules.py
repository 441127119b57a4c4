"""Learning-rate schedules: factors that follow from the step, or from the gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from ..api.errors import UsageError
from ..api.recipe import Recipe, Stage

#: Gives gradients (R, P) on that many fresh minibatches at the current parameters.
Measure = Callable[[int], Iterable[Tensor]]


def learning_rate_factor(recipe: Recipe, step: int) -> float:
    """Return the factor on the learning rate at `step`, counted from 0.

    `step` is torch's StepLR. `cosine` is its CosineAnnealingLR, which would be 0 one step after the
    last. `adaptive` multiplies the factor by that of `AdaptiveRate`.
    """
    factor = 1.0
    if recipe.schedule == "step":
        factor = recipe.decay ** (step // recipe.decay_every)
    elif recipe.schedule == "cosine":
        factor = 0.5 * (1.0 + math.cos(math.pi * step / recipe.steps))
    if step < recipe.warmup:
        # From 1/warmup, not 0: the first step shall change something.
        factor *= (step + 1) / recipe.warmup
    return factor


#: The schedules that use an argument of a recipe.
_SCHEDULES_OF = {
    **dict.fromkeys(("decay_every", "decay"), ("step", "adaptive")),
    **dict.fromkeys(
        ("measure_every", "measure_batches", "cosine_memory", "cosine_threshold"), ("adaptive",)
    ),
}


def require_used(recipe: Recipe, named: Recipe) -> None:
    """Raise UsageError for an argument that differs from the named recipe's and has no effect."""
    for name, schedules in _SCHEDULES_OF.items():
        if recipe.schedule not in schedules and getattr(recipe, name) != getattr(named, name):
            known = " or ".join(schedules)
            raise UsageError(f"recipe_args: {name} is for schedule={known}, not {recipe.schedule}")
    changed = recipe.schedule_steps != named.schedule_steps
    if changed and recipe.schedule == "constant" and not (recipe.warmup or recipe.stages):
        raise UsageError(
            "recipe_args: schedule_steps needs a schedule, a warmup or stages to scale"
        )
    if not recipe.gradient_memory and recipe.gradient_weight != named.gradient_weight:
        raise UsageError("recipe_args: gradient_weight needs gradient_memory")


def fit_schedule(recipe: Recipe, steps: int) -> Recipe:
    """Return the recipe for that many steps, its schedule scaled from `schedule_steps`.

    Measuring takes at most a tenth of the gradients, or the recipe's own share if that is larger.
    Where it is therefore done more rarely, the running mean forgets more at each time, so that it
    reaches back over the same part of the training.
    """
    scale = steps / recipe.schedule_steps if recipe.schedule_steps and steps else 1.0
    most_often = min(recipe.measure_every, 10 * recipe.measure_batches)
    measure_every = max(most_often, round(scale * recipe.measure_every))
    rarer = max(1.0, measure_every / (scale * recipe.measure_every))
    return recipe.model_copy(
        update={
            "steps": steps,
            "warmup": round(scale * recipe.warmup),
            "decay_every": max(1, round(scale * recipe.decay_every)),
            "stages": _scaled(recipe.stages, scale),
            "measure_every": measure_every,
            "cosine_memory": recipe.cosine_memory**rarer,
        }
    )


def _scaled(stages: Sequence[Stage], scale: float) -> tuple[Stage, ...]:
    """The stages, each ending where it ends in proportion; one that would take no step goes."""
    ends = [round(scale * end) for end in accumulate(stage.steps for stage in stages)]
    lengths = [end - start for start, end in pairwise([0, *ends])]
    return tuple(
        stage.model_copy(update={"steps": steps})
        for stage, steps in zip(stages, lengths, strict=True)
        if steps
    )


def measuring_share(recipe: Recipe) -> float:
    """Return how many gradients the adaptive schedule measures per step."""
    return recipe.measure_batches / recipe.measure_every if recipe.schedule == "adaptive" else 0.0


class AdaptiveRate:
    """The schedule of Liu et al. (ICLR 2025) for high precision: one factor per replica, (R,).

    Every `measure_every` steps the mean cosine between the gradients of consecutive minibatches, at
    the same parameters, enters a running mean that starts at 1. Every `decay_every` steps the rate
    is multiplied by `decay` where that mean is at least the threshold, and divided by `decay`
    elsewhere. The authors' code takes 64 minibatches, keeps the rate above 1e-10, and does not
    raise it in the first 1,000 steps.
    """

    def __init__(self, recipe: Recipe, replicas: int, device: torch.device) -> None:
        self.recipe = recipe
        self.factor = torch.ones(replicas, dtype=torch.float64, device=device)
        self.cosine = torch.ones(replicas, dtype=torch.float64, device=device)

    def advance(self, step: int, measure: Measure) -> None:
        """Measure and adapt, if that is due after `step` completed steps."""
        recipe = self.recipe
        if step % recipe.measure_every == 0:
            # Pair after pair: all gradients at once might not fit into memory.
            pairs = pairwise(measure(recipe.measure_batches))
            # Of gradients that are 0 or diverged it is NaN, which would stay in the running mean.
            cosines = torch.stack([_cosine(a, b).nan_to_num() for a, b in pairs])
            memory, latest = recipe.cosine_memory, cosines.mean(dim=0)
            self.cosine = memory * self.cosine + (1 - memory) * latest
        if step % recipe.decay_every == 0:
            # As published: the rate falls while minibatches agree and rises otherwise.
            lowered = self.cosine >= recipe.cosine_threshold
            self.factor = torch.where(
                lowered, self.factor * recipe.decay, self.factor / recipe.decay
            )


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    """The cosine (R,) between rows (R, P), in float64; NaN where one has no length.

    torch.cosine_similarity raises lengths below 1e-8, which high precision reaches, to that.
    """
    a, b = a.double(), b.double()
    cosine: Tensor = (a * b).sum(dim=1) / (a.norm(dim=1) * b.norm(dim=1))
    return cosine
