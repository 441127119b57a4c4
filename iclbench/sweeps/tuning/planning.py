"""Planning a search: its space, its points, and a trial's run for each of them.

Trials have seeds and prompts that no board uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...api.errors import PLUGIN_FAILURES, UsageError, reason_of
from ...api.spec import RunSpec
from ...api.tuning import SHARE, SearchSpace, tuning_evaluation_seed, tuning_seeds
from ...runs.plan import Plan, resolve
from ...runs.reuse import standing
from ...runs.settings import Settings
from ...runs.statistics import GRADE
from ...runs.store import RecordStore
from .points import Point, points_of
from .settings import SearchSettings
from .space import require_free, search_space
from .trials import trial_budget

#: The folder of the trials' records, in the output folder.
TRIALS_FOLDER = "tuning"
#: The most prompts that a trial is evaluated on.
MOST_PROMPTS = 1024
#: A trial is graded only where a grade ranks it: grading costs.
UNGRADED: Mapping[str, Any] = {"grader": None, "grader_args": {}, "grader_budget": None}


class PlannedTrial(NamedTuple):
    """A trial: its arguments, its run, whether that has a record, and why it gives no score."""

    point: Point
    plan: Plan | None
    exists: bool
    failure: str | None

    @property
    def is_missing(self) -> bool:
        """Whether it is still to be run."""
        return self.plan is not None and not self.exists


class PlannedSearch(NamedTuple):
    """The trials of a search for the arguments of a plan, and the space they are drawn from."""

    plan: Plan
    space: SearchSpace
    trials: list[PlannedTrial]

    @property
    def missing(self) -> int:
        """How many trials have no record yet; those that can't run are not counted."""
        return sum(trial.is_missing for trial in self.trials)

    @property
    def why_none_runs(self) -> str:
        """The first trial's failure where no trial can be planned; else empty."""
        if any(trial.plan is not None for trial in self.trials):
            return ""
        return next((trial.failure for trial in self.trials if trial.failure), "")

    @property
    def key(self) -> str:
        """The same for searches that share trials, such as those for other seeds of one run.

        It is the id of the first trial that can run: with one search seed, a longer search begins
        with the trials of a shorter one.
        """
        plans = [trial.plan for trial in self.trials if trial.plan is not None]
        return (plans[0] if plans else self.plan).spec.id


def planned_search(plan: Plan, settings: Settings, search: SearchSettings) -> PlannedSearch:
    """The search that `tune` would make; raises UsageError as `tune` does."""
    require_not_given(plan, search)
    if plan.request.init is not None and None not in plan.states:
        raise UsageError(
            "--init: these weights are of several seeds, and a trial has a seed of its own: give "
            "those of one seed"
        )
    store = RecordStore(settings.out / TRIALS_FOLDER)
    trials = [_planned(plan, p, search.tuning_seeds, store) for p in points_in(plan, search)]
    return PlannedSearch(plan, search_space(plan, search.space), trials)


def require_not_given(plan: Plan, search: SearchSettings) -> None:
    """Raise UsageError for an argument that the search changes and the plan's request gives.

    A suite may give it, too.
    """
    require_free(search.space, plan.request.model_args, plan.request.recipe_args)


def points_in(plan: Plan, search: SearchSettings) -> list[Point]:
    """The points of a search, fewer than its trials where its space has no more."""
    space = search_space(plan, search.space)
    return points_of(space, plan, search.trials, search.search_seed)


def _planned(plan: Plan, point: Point, seeds: int, store: RecordStore) -> PlannedTrial:
    try:
        trial = resolve(_request(plan, point, seeds))
    except PLUGIN_FAILURES as error:
        return PlannedTrial(point, None, False, reason_of(error))
    stands = standing(store, trial.spec)
    return PlannedTrial(point, trial, not stands.to_run, stands.problem or None)


def _request(plan: Plan, point: Point, seeds: int) -> RunSpec:
    """The run of a trial."""
    request, recipe = plan.request, plan.recipe
    assert recipe is not None
    recipe_args = {**request.recipe_args, **point.recipe_args}
    if request.budget is None:
        recipe_args["steps"] = max(1, round(SHARE * recipe.steps))
        # A constant rate from the first step on has no length that could be scaled.
        is_constant = recipe_args.get("schedule", recipe.schedule) == "constant"
        if not is_constant or recipe.warmup or recipe.stages:
            recipe_args["schedule_steps"] = recipe.schedule_steps or recipe.steps
    return request.model_copy(
        update={
            "model_args": {**request.model_args, **point.model_args},
            "recipe_args": recipe_args,
            "budget": None if request.budget is None else trial_budget(request.budget),
            "seeds": tuning_seeds(seeds),
            "eval_seed": tuning_evaluation_seed(request.eval_seed),
            "eval_prompts": min(request.eval_prompts, MOST_PROMPTS),
            "metrics": (),
            "shift": (),
            **({} if plan.task.primary.metric.startswith(GRADE) else UNGRADED),
        }
    )
