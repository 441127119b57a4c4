"""The time of a training, from its rate on this machine, measured for about a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..api.budget import Budget
from ..devices import find_device
from ..precision import DTYPES, full_precision
from ..runs.budget import require_device
from ..runs.models import initial_module
from ..sweeps.campaign.remaining import share_left
from ..training.clock import Clock
from ..training.loop import Training
from ..training.random_streams import forked_generators
from ..training.rate import ENDLESS, warm_up
from ..training.schedules import measuring_share
from ..training.state import Replica

if TYPE_CHECKING:
    from ..runs.plan import Plan
    from ..runs.settings import Settings

#: Seconds of training that are timed, and the most steps of a chunk of it: steps may be slow.
TRIAL_SECONDS, TRIAL_CHUNK = 1.0, 4


@dataclass(frozen=True)
class Estimate:
    """What a training will take: steps, steps per second of all its seeds together, and seconds.

    Where a budget sets the steps, only its core or device time is known, of all seeds. Without any,
    the rate was not measured.
    """

    steps: int | None
    rate: float | None
    seconds: float | None
    budget: Budget | None = None


def estimate(plan: Plan, settings: Settings) -> Estimate:
    """Measure the rate of a plan that trains; it leaves nothing behind.

    The seconds are those of the steps that its checkpoint lacks. Raises what the training would
    raise at its start.
    """
    assert plan.recipe is not None
    device = find_device(settings.device)
    require_device(plan.spec.budget, device)
    if plan.spec.budget is not None:
        budget = Budget.parse(plan.spec.budget).times(len(plan.spec.seeds))
        return Estimate(None, None, None, budget)
    changes = {"steps": ENDLESS, "chunk": min(plan.recipe.chunk, TRIAL_CHUNK)}
    seeds = plan.spec.seeds
    rate = plan.spec.recipe_args["learning_rate"]
    with full_precision(DTYPES[plan.spec.dtype]), forked_generators(device):
        trial = Training(
            [initial_module(plan, seed) for seed in seeds],
            [Replica(seed, rate, plan.task) for seed in seeds],
            plan.task,
            plan.recipe.model_copy(update=changes),
            device=device,
            dtype=DTYPES[plan.spec.dtype],
            freeze=plan.spec.freeze,
            engine=settings.engine,
        )
        per_second = _rate(trial)
    # As for a budget: what the adaptive schedule measures between chunks takes its share.
    per_second /= 1.0 + measuring_share(plan.recipe)
    left = plan.recipe.steps * share_left(plan, settings)
    return Estimate(plan.recipe.steps, per_second, left / per_second)


def _rate(trial: Training) -> float:
    """The steps per second of a training, without those of the chunks that warm up.

    A chunk that takes longer than the trial should ends it: beside such steps, warming up is
    little.
    """
    trial.adaptive = None
    for _ in range(warm_up(trial.device)):
        if (seconds := _seconds_of_chunk(trial)) > TRIAL_SECONDS:
            return trial.recipe.chunk / seconds
    seconds, first = 0.0, trial.step
    while seconds < TRIAL_SECONDS:
        seconds += _seconds_of_chunk(trial)
    return (trial.step - first) / max(seconds, 1e-9)


def _seconds_of_chunk(trial: Training) -> float:
    clock = Clock(trial.device)
    with clock.running():
        trial.advance()
    return max(clock.wall, 1e-9)
