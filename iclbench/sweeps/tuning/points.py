"""The points of a search: what its trials have, drawn from its space."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc

from ...api.errors import UsageError
from ...api.random import philox
from ...api.spec import canonical_json
from ...api.tuning import Range, SearchSpace
from ...runs.arguments import values_of
from ...runs.plan import Plan
from .space import recipe_of
from .trials import MOST_TRIALS

#: Points of one program, which differ only in learning rate and initial scale.
PER_PROGRAM = 4
#: So many shapes are drawn for each program, and at least so many in all; those that differ are
#: tried first.
DRAWS, LEAST_DRAWS = 8, 256


@dataclass(frozen=True)
class Point:
    """Arguments of one trial; points of one `program` can be trained as one program."""

    program: int
    model_args: dict[str, Any]
    recipe_args: dict[str, Any]


def points_of(space: SearchSpace, plan: Plan, trials: int, seed: int) -> list[Point]:
    """At most that many distinct points: the recipe's own if it is in the space, then Sobol's.

    The points of a program share optimizer, schedule, depth and width, which are drawn once.
    Raises UsageError for no trial, or too many.
    """
    if not 1 <= trials <= MOST_TRIALS:
        raise UsageError(f"trials={trials}: a search has 1 to {MOST_TRIALS:,} trials")
    programs = math.ceil(trials / PER_PROGRAM)
    numbers = list(_sobol(2, programs * PER_PROGRAM, "tuning numbers", seed))
    preset = own_point(space, plan)
    shapes = _shapes_of(space, programs, seed, preset)
    points: list[Point] = [preset] if preset else []
    sizes = Counter(point.program for point in points)
    # Equal points have one learning rate, so that each is compared with few others.
    by_rate = {point.recipe_args["learning_rate"]: [point] for point in points}
    for index, (rate, scale) in enumerate(numbers):
        program = index // PER_PROGRAM
        model_args, recipe_args = (dict(args) for args in shapes[program])
        recipe_args["learning_rate"] = _in_range(space.learning_rate, rate)
        if space.init_std is not None:
            model_args["init_std"] = _in_range(space.init_std, scale)
        point = Point(program, model_args, recipe_args)
        alike = by_rate.setdefault(recipe_args["learning_rate"], [])
        is_new = all((p.model_args, p.recipe_args) != (model_args, recipe_args) for p in alike)
        # The first program has the recipe's own point in place of its last one.
        if is_new and sizes[program] < PER_PROGRAM:
            points.append(point)
            alike.append(point)
            sizes[program] += 1
    return points[:trials]


def _shapes_of(
    space: SearchSpace, count: int, seed: int, preset: Point | None
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What each of `count` programs has in common: arguments of the model, and of the recipe.

    Those of the preset come first. A shape is drawn again only where few others are left.
    """
    most = max(DRAWS * count, LEAST_DRAWS)
    draws = _sobol(2 + len(space.model_args), most, "tuning shapes", seed)
    drawn = [_shape(space, numbers) for numbers in draws]
    if preset:
        own = {name: preset.model_args[name] for name in space.model_args}
        without_rate = {k: v for k, v in preset.recipe_args.items() if k != "learning_rate"}
        drawn[0] = own, without_rate
    shapes: list[tuple[dict[str, Any], dict[str, Any]]] = []
    known = set()
    for shape in drawn:
        key = canonical_json(shape)
        if key not in known:
            known.add(key)
            shapes.append(shape)
    return [*shapes, *drawn][:count]


def _shape(space: SearchSpace, numbers: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that numbers in [0, 1) choose: optimizer, schedule, arguments of the model."""
    choice = _pick(space.optimizers, numbers[0])
    chosen = zip(space.model_args.items(), numbers[2:], strict=True)
    recipe_args = {
        "optimizer": choice.name,
        "optimizer_args": dict(choice.args),
        "schedule": _pick(space.schedules, numbers[1]),
    }
    return {name: _pick(values, number) for (name, values), number in chosen}, recipe_args


def own_point(space: SearchSpace, plan: Plan) -> Point | None:
    """The point of the recipe and the model as they are, or None if the space lacks it."""
    recipe = recipe_of(plan)
    names = [*space.model_args, *(["init_std"] if space.init_std else [])]
    # From the configuration: a spec lacks an `added_later` argument that has its default.
    values = values_of(plan.config)
    model_args = {name: values[name] for name in names}
    recipe_args = {
        "optimizer": recipe.optimizer,
        "optimizer_args": dict(recipe.optimizer_args),
        "schedule": recipe.schedule,
        "learning_rate": recipe.learning_rate,
    }
    return Point(0, model_args, recipe_args) if space.contains(model_args, recipe_args) else None


def _sobol(dimensions: int, count: int, stream: str, seed: int) -> Iterator[np.ndarray]:
    """`count` points of a scrambled Sobol sequence in the unit cube."""
    sequence = qmc.Sobol(dimensions, scramble=True, seed=philox(stream, seed))
    # A power of two, for which the sequence is balanced.
    return iter(sequence.random_base2(math.ceil(math.log2(count)))[:count])


def _pick(values: Sequence[Any], number: float) -> Any:
    return values[min(int(number * len(values)), len(values) - 1)]


def _in_range(limits: Range, number: float) -> float:
    """The value at `number` in [0, 1) of a range, on a log scale, with two significant digits."""
    low, high = limits
    if low == high:
        return low
    # The ratio of the limits may be beyond the largest float.
    exponent = math.log10(low) + number * (math.log10(high) - math.log10(low))
    value = low * (high / low) ** number if math.isfinite(high / low) else 10**exponent
    return float(f"{value:.1e}")
