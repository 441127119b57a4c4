"""Values whose mean is known, for `coverage.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from iclbench.runs.intervals import Quantity

PROMPTS = 512
#: Digits of a prediction that is lost, at 10³ times the root mean square of the targets.
LOST = -3.0

#: Seeds of two kinds: which, by how many digits they are better, and their share.
TWO_KINDS = (
    ("half of the seeds 1 digit better", 1.0, 0.5),
    ("20% of the seeds 2 digits worse", -2.0, 0.2),
)

Draw = Callable[[np.random.Generator, int, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Scenario:
    """Values whose mean is known. `draw(random, seeds, count)` gives (seeds, prompts, count) values
    and the truth of each, (count,): with one seed, the mean of that seed.
    """

    name: str
    quantity: Quantity
    draw: Draw


def effects(
    random: np.random.Generator, seeds: int, count: int, sizes: tuple[float, float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Normal values of mean 0, with deviations of seeds, prompts and both; and those of seeds."""
    of_seeds = sizes[0] * random.standard_normal((seeds, 1, count))
    of_prompts = sizes[1] * random.standard_normal((1, PROMPTS, count))
    of_both = sizes[2] * random.standard_normal((seeds, PROMPTS, count))
    return of_seeds + of_prompts + of_both, of_seeds[:, 0]


def normal_digits(sizes: tuple[float, float, float]) -> Draw:
    """Digits around 3."""

    def draw(random: np.random.Generator, seeds: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        values, of_seeds = effects(random, seeds, count, sizes)
        return 3 + values, 3 + (of_seeds[0] if seeds == 1 else np.zeros(count))

    return draw


def log_normal(sigma: float, of_seeds: float = 0.1, of_prompts: float = 0.45) -> Draw:
    """Errors whose natural logarithm has deviation σ, with these shares of its variance."""
    shares = of_seeds, of_prompts, 1 - of_seeds - of_prompts
    sizes = (sigma * shares[0] ** 0.5, sigma * shares[1] ** 0.5, sigma * shares[2] ** 0.5)

    def draw(random: np.random.Generator, seeds: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        values, by_seed = effects(random, seeds, count, sizes)
        alone = by_seed[0] if seeds == 1 else np.full(count, sizes[0] ** 2 / 2)
        return np.exp(values), np.exp(alone + (sizes[1] ** 2 + sizes[2] ** 2) / 2)

    return draw


def power_law(exponent: float) -> Draw:
    """Errors of prompts above x with probability x to the power of −exponent; seeds differ little.

    The variance is infinite for exponents below 2.
    """

    def draw(random: np.random.Generator, seeds: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        of_prompts = random.random((1, PROMPTS, count)) ** (-1 / exponent)
        values = of_prompts * np.exp(0.5 * random.standard_normal((seeds, PROMPTS, count)))
        return values, np.full(count, np.exp(0.125) * exponent / (exponent - 1))

    return draw


def lost_prompts(draw: Draw, lost: float, rate: float = 0.01) -> Draw:
    """The same, where every seed loses the same 1% of the prompts."""

    def draw_with(
        random: np.random.Generator, seeds: int, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        values, truth = draw(random, seeds, count)
        is_lost = random.random((1, PROMPTS, count)) < rate
        return np.where(is_lost, lost, values), (1 - rate) * truth + rate * lost

    return draw_with


def large_on_some(draw: Draw, factor: float, sigma: float, rate: float = 0.01) -> Draw:
    """The same, where 1% of the prompts have errors so many times as large, log-normally."""

    def draw_with(
        random: np.random.Generator, seeds: int, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        values, truth = draw(random, seeds, count)
        shape = (1, PROMPTS, count)
        factors = factor * np.exp(sigma * random.standard_normal(shape))
        factors = np.where(random.random(shape) < rate, factors, 1.0)
        return values * factors, truth * (1 - rate + rate * factor * np.exp(sigma**2 / 2))

    return draw_with


def diverging_seeds(draw: Draw, lost: float, rate: float, of_all: bool) -> Draw:
    """The same, where seeds diverge at a rate. The truth is the mean of the seeds that do not, or
    of all.
    """

    def draw_with(
        random: np.random.Generator, seeds: int, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        values, truth = draw(random, seeds, count)
        diverged = random.random((seeds, 1, count)) < rate
        values = np.where(diverged, lost, values)
        return values, (1 - rate) * truth + rate * lost if of_all else truth

    return draw_with


def seeds_of_two_kinds(draw: Draw, gain: float, rate: float) -> Draw:
    """The same, where a share of the seeds is so much better, as those that make a transition."""

    def draw_with(
        random: np.random.Generator, seeds: int, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        values, truth = draw(random, seeds, count)
        gains = gain * (random.random((seeds, 1, count)) < rate)
        return values + gains, truth + (gains[0, 0] if seeds == 1 else rate * gain)

    return draw_with


def fraction(mean: float) -> Draw:
    """Right or wrong answers, by a probit model with effects of seeds and of prompts."""
    sizes = (0.2, 1.0, 1.0)
    threshold = mean * sum(size**2 for size in sizes) ** 0.5

    def draw(random: np.random.Generator, seeds: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        values, of_seeds = effects(random, seeds, count, sizes)
        inner = (sizes[1] ** 2 + sizes[2] ** 2) ** 0.5
        alone = ndtr((threshold + of_seeds[0]) / inner)
        truth = alone if seeds == 1 else np.full(count, ndtr(mean))
        return (values + threshold > 0).astype(float), truth

    return draw


def scenarios() -> list[Scenario]:
    """All the kinds of values whose intervals are simulated."""
    digits, errors = normal_digits((0.3, 1.0, 0.5)), log_normal(1.0)
    lost = 10.0 ** (-2 * LOST)
    kinds: list[tuple[str, Quantity, Draw, float]] = [
        ("digits", "digits", digits, LOST),
        ("errors", "error", errors, lost),
    ]
    return [
        Scenario("digits, normal", "digits", digits),
        Scenario("digits, seeds differ most", "digits", normal_digits((1.0, 0.3, 0.3))),
        Scenario("digits, prompts differ most", "digits", normal_digits((0.01, 1.0, 0.1))),
        Scenario("digits, 1% of prompts lost", "digits", lost_prompts(digits, LOST)),
        *(Scenario(f"errors, log-normal σ = {s}", "error", log_normal(s)) for s in (1, 2, 3)),
        Scenario("errors, log-normal σ = 1, seeds differ most", "error", log_normal(1.0, 0.6, 0.2)),
        Scenario("errors, seeds log-normal σ = 2", "error", log_normal(5**0.5, 0.8, 0.1)),
        *(
            Scenario(f"errors, log-normal σ = {s}, prompts differ most", "error", draw)
            for s in (1, 2)
            for draw in [log_normal(s, of_seeds=0.02, of_prompts=0.9)]
        ),
        Scenario("errors, power law of exponent 2", "error", power_law(2.0)),
        Scenario("errors, power law of exponent 1.3", "error", power_law(1.3)),
        Scenario("errors, 1% of prompts lost", "error", lost_prompts(errors, lost)),
        Scenario(
            "errors, 1% of prompts 100 times as large", "error", large_on_some(errors, 100.0, 1.5)
        ),
        *(
            Scenario(
                f"{name}, {rate:.0%} of seeds diverge: mean of {whose}",
                quantity,
                diverging_seeds(draw, level, rate, whose == "all seeds"),
            )
            for name, quantity, draw, level in kinds
            for rate in (0.05, 0.2)
            for whose in ("the others", "all seeds")
        ),
        *(
            Scenario(f"digits, {name}", "digits", seeds_of_two_kinds(digits, gain, rate))
            for name, gain, rate in TWO_KINDS
        ),
        *(
            Scenario(f"fraction {ndtr(z):.3g}", "fraction", fraction(z))
            for z in (-3.0, -1.3, 0.0, 2.3, 3.0)
        ),
    ]
