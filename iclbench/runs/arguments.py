"""Arguments of a plan in the form of a spec, whichever form the user gave them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from ..api.config import parse_config
from ..api.errors import UsageError
from ..api.recipe import Recipe
from ..training.optimizers.choice import with_whole_optimizer
from .plan import Plan

Group = Literal["model_args", "recipe_args"]
#: The arguments that a tuning chooses.
GROUPS: tuple[Group, ...] = ("model_args", "recipe_args")

_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


def values_of(config: BaseModel) -> dict[str, Any]:
    """Every field in JSON form, including the defaults that a dump omits (`added_later`)."""
    return {name: in_json(value) for name, value in config}


def in_json(value: Any) -> Any:
    """A value of a configuration's field as JSON has it: a list for a tuple, for example."""
    return _ANYTHING.dump_python(value, mode="json")


def arguments_of(plan: Plan, group: Group) -> dict[str, Any]:
    """Every argument of the plan's model or recipe; none of a recipe where nothing is trained."""
    config = plan.config if group == "model_args" else plan.recipe
    return {} if config is None else values_of(config)


def given_arguments(plan: Plan, group: Group) -> dict[str, Any]:
    """The arguments that the request gives, with the values that the plan has."""
    values = arguments_of(plan, group)
    return {name: values[name] for name in getattr(plan.request, group) if name in values}


def in_normal_form(plan: Plan, group: Group, args: Mapping[str, Any]) -> dict[str, Any]:
    """`args` with the values that the plan would have if they replaced its own.

    So 16.0 is 16 for an integer, and an optimizer's arguments get their defaults. Invalid arguments
    are returned as they are.
    """
    try:
        values = values_of(_replaced(plan, group, args))
    except UsageError:
        return dict(args)
    return {name: values[name] for name in args}


def _replaced(plan: Plan, group: Group, args: Mapping[str, Any]) -> BaseModel:
    """The configuration of the model, or the recipe, with `args` in place of the plan's own."""
    if group == "model_args":
        values = {**plan.config.model_dump(), **args}
        return parse_config(plan.architecture.Config, values, plan.spec.model)
    if plan.recipe is None:
        raise UsageError(f"{plan.spec.model}: nothing is trained")
    recipe = parse_config(Recipe, {**plan.recipe.model_dump(), **args}, plan.spec.recipe)
    return with_whole_optimizer(recipe)
