"""The search space of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch

from ...api.config import parse_config
from ...api.errors import UsageError
from ...api.recipe import Recipe
from ...api.spec import canonical_json
from ...api.tuning import OptimizerChoice, Range, SearchSpace
from ...runs.arguments import values_of
from ...runs.models import initial_module
from ...runs.plan import Plan
from ...training.optimizers.base import BatchOptimizer
from ...training.optimizers.choice import OWN, make_optimizer, with_whole_optimizer
from ...training.replicas import Replicas

#: The learning rates that are searched, relative to the recipe's.
RATES = (0.1, 30.0)
#: The initial scales that are searched.
SCALES = (0.02, 0.2)
#: A default outside that range is searched between this share and this multiple of it.
AROUND = 3.0
#: The depths and widths that are searched of models that name no arguments of their own.
SHAPES = {"layers": (1, 2, 4, 8), "width": (16, 32, 64, 128)}
#: Optimizers besides the recipe's own, tried where they are installed and take the model.
OPTIMIZERS = (
    OptimizerChoice(name="adam"),
    OptimizerChoice(name="soap"),
    # With this scale Muon takes the learning rates of Adam. It takes matrices only.
    OptimizerChoice(name="muon", args={"weight_decay": 0.0, "adjust_lr_fn": "match_rms_adamw"}),
)
SCHEDULES = ("cosine", "constant")
#: The arguments of a recipe that each field of a space searches.
SEARCHED = {
    "learning_rate": ("learning_rate",),
    "optimizers": ("optimizer", "optimizer_args"),
    "schedules": ("schedule",),
}


def require_free(
    changes: Mapping[str, Any], model_args: Mapping[str, Any], recipe_args: Mapping[str, Any]
) -> None:
    """Raise UsageError for an argument that is given and that changes to a space search."""
    shapes = changes.get("model_args")
    searched = [*shapes] if isinstance(shapes, Mapping) else []
    searched += ["init_std"] if changes.get("init_std") is not None else []
    both = [name for name in searched if name in model_args]
    for field, names in SEARCHED.items():
        both += [name for name in names if field in changes and name in recipe_args]
    if both:
        raise UsageError(f"{', '.join(both)} can't be both given and searched")


def search_space(plan: Plan, changes: Mapping[str, Any]) -> SearchSpace:
    """The space of a run: the default one with `changes` to its fields, each replaced whole.

    An argument that the request gives is fixed; a tuned plan's request gives those that its search
    changed. Raises UsageError for changes that don't fit.
    """
    recipe, given = recipe_of(plan), plan.request.recipe_args
    rate = recipe.learning_rate
    preset = OptimizerChoice(name=recipe.optimizer, args=recipe.optimizer_args)
    # Given arguments fix the optimizer too: another one would not take them.
    is_fixed = bool(given.keys() & set(SEARCHED["optimizers"]))
    default = {
        "learning_rate": _fixed_or(given, "learning_rate", rate, _around(rate)),
        "init_std": _scales(plan),
        "optimizers": [preset] if is_fixed else [preset, *_others(plan, preset)],
        "schedules": [recipe.schedule]
        if "schedule" in given
        else [*dict.fromkeys([recipe.schedule, *SCHEDULES])],
        "model_args": _shapes(plan),
    }
    space = parse_config(SearchSpace, {**default, **_with_tables(changes)}, "space")
    for name in (*space.model_args, *(["init_std"] if space.init_std else [])):
        if name not in plan.architecture.Config.model_fields:
            raise UsageError(f"space: {plan.spec.model} has no argument {name!r}")
    if space.init_std and plan.request.init is not None:
        raise UsageError("space: init_std has no effect on a training from given weights")
    return space.model_copy(
        update={"optimizers": tuple(_complete(plan, choice) for choice in space.optimizers)}
    )


def _with_tables(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, with optimizers that are given by name as tables."""
    names = changes.get("optimizers")
    if not isinstance(names, list):
        return dict(changes)
    for name in names:
        if not isinstance(name, str | Mapping):
            raise UsageError(f"space: optimizers: a name or a table is needed (got {name!r})")
    tables = [{"name": name} if isinstance(name, str) else name for name in names]
    return {**changes, "optimizers": tables}


def recipe_of(plan: Plan) -> Recipe:
    """The plan's recipe; raises UsageError if nothing is trained."""
    if plan.recipe is None:
        raise UsageError(f"{plan.spec.model}: nothing is trained, so there is nothing to tune")
    return plan.recipe


def _fixed_or(given: Mapping[str, Any], name: str, value: float, searched: Range) -> Range:
    return (value, value) if name in given else searched


def _around(rate: float) -> Range:
    low, high = (float(f"{factor * rate:.2g}") for factor in RATES)
    return low, high


def _scales(plan: Plan) -> Range | None:
    """The range of initial scales, if replicas can differ in it."""
    default = getattr(plan.config, "init_std", None)
    may_differ = "init_std" in plan.architecture.replica_args and plan.request.init is None
    if not may_differ or not isinstance(default, float):
        return None
    low, high = SCALES
    if not low <= default <= high:  # as that of a model without norms
        low, high = default / AROUND, default * AROUND
    return _fixed_or(plan.request.model_args, "init_std", default, (low, high))


def _shapes(plan: Plan) -> dict[str, tuple[Any, ...]]:
    """Values of the arguments for depth and width that are not given, the default among them."""
    if plan.request.init is not None:
        return {}  # the given weights have a shape
    fields = plan.architecture.Config.model_fields
    named = plan.architecture.search_args
    if not isinstance(named, Mapping):
        raise UsageError(f"search_args of {plan.spec.model} must map arguments to values to try")
    # As JSON, in which a configuration's values are compared with them.
    given = json.loads(canonical_json(dict(named)))
    values: dict[str, tuple[Any, ...]] = {name: tuple(allowed) for name, allowed in given.items()}
    if not values:
        values = {name: SHAPES[name] for name in SHAPES if name in fields}
    shapes = {}
    unknown_names = [name for name in values if name not in fields]
    if unknown_names:
        raise UsageError(
            f"search_args of {plan.spec.model} names {', '.join(unknown_names)}, which it lacks"
        )
    for name, allowed in values.items():
        if name not in plan.request.model_args:
            default = values_of(plan.config)[name]
            shapes[name] = allowed if default in allowed else (*allowed, default)
    return shapes


def _others(plan: Plan, preset: OptimizerChoice) -> list[OptimizerChoice]:
    """The optimizers besides the recipe's that the model's parameters and the machine allow."""
    cls = OWN.get(preset.name.lower())
    if cls is not None and issubclass(cls, BatchOptimizer):
        return []  # it takes another kind of recipe
    others = [choice for choice in OPTIMIZERS if choice.name != preset.name]
    return [choice for choice in others if _is_usable(plan, choice)]


def _is_usable(plan: Plan, choice: OptimizerChoice) -> bool:
    try:
        _complete(plan, choice)
        module = initial_module(plan, plan.spec.seeds[0])
        replicas = Replicas([module], torch.device("cpu"), plan.spec.freeze)
        make_optimizer(replicas, choice.name, choice.args)
    except UsageError:
        return False
    return True


def _complete(plan: Plan, choice: OptimizerChoice) -> OptimizerChoice:
    """The choice with every argument that a spec will hold; raises UsageError."""
    changes = {"optimizer": choice.name, "optimizer_args": choice.args}
    recipe = with_whole_optimizer(recipe_of(plan).model_copy(update=changes))
    return OptimizerChoice(name=recipe.optimizer, args=recipe.optimizer_args)
