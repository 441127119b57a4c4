"""Boards whose differences are known, for `coverage.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from iclbench.leaderboards.ranking import ranked_values

from .coverage_scenarios import LOST, TWO_KINDS

PROMPTS, ROWS = 256, 20


@dataclass(frozen=True)
class BoardScenario:
    """Boards of 20 rows or fewer: `draw(random, seeds)` gives (rows, seeds, prompts) values.

    The first half of the rows is `gain` better in truth; all rows are alike where it is 0.
    """

    name: str
    draw: Callable[[np.random.Generator, int], np.ndarray]
    gain: float = 0.0
    #: Which values are better: digits that are higher, errors that are lower.
    better: Literal["higher", "lower"] = "higher"


def copies(sizes: tuple[float, float, float]) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Rows of one model, each with its seeds, on the same prompts."""

    def draw(random: np.random.Generator, seeds: int) -> np.ndarray:
        rows = (ROWS, seeds)
        values = sizes[0] * random.standard_normal((*rows, 1))
        values = values + sizes[1] * random.standard_normal(PROMPTS)
        return np.asarray(
            values + sizes[2] * random.standard_normal((*rows, PROMPTS), dtype=np.float32)
        )

    return draw


def models(
    of_seeds: float, spread: float = 0.0
) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Rows of models that find other prompts hard, equally often.

    The deviations of their seeds have a median and, in natural logarithms, a spread over rows.
    """
    alike = copies((1.0, 0.0, 0.0))
    others = copies((0.0, 1.0, 0.5))

    def draw(random: np.random.Generator, seeds: int) -> np.ndarray:
        by_row = of_seeds * np.exp(spread * random.standard_normal((ROWS, 1, 1)))
        of_models = random.standard_normal((ROWS, 1, PROMPTS))
        return by_row * alike(random, seeds) + of_models + others(random, seeds)

    return draw


def apart(*deviations: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Rows of models that find other prompts hard, whose seeds have these deviations."""
    others = models(0.0)

    def draw(random: np.random.Generator, seeds: int) -> np.ndarray:
        of_seeds = random.standard_normal((len(deviations), seeds, 1))
        by_row = np.array(deviations)[:, None, None] * of_seeds
        return np.asarray(by_row + others(random, seeds)[: len(deviations)])

    return draw


def identical(random: np.random.Generator, seeds: int) -> np.ndarray:
    """The same row again and again."""
    return np.repeat(copies((0.3, 1.0, 0.5))(random, seeds)[:1], ROWS, axis=0)


def few_of_two_kinds(random: np.random.Generator, seeds: int) -> np.ndarray:
    """Rows whose seeds agree, and a quarter of rows whose seeds are of two kinds; equal means."""
    values = copies((0.05, 1.0, 0.5))(random, seeds)
    few = values[: ROWS // 4]
    few += (random.random((len(few), seeds, 1)) < 0.5) - 0.5
    return values


def two_kinds(
    gain: float, rate: float, rows: int, within: float = 0.1
) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Copies, a share of whose seeds is so many digits better; the others differ by `within`."""
    alike = copies((within, 1.0, 0.5))

    def draw(random: np.random.Generator, seeds: int) -> np.ndarray:
        values = alike(random, seeds) + gain * (random.random((ROWS, seeds, 1)) < rate)
        return np.asarray(values[:rows])

    return draw


def unequal_tails(sigma: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Errors of equal mean, log-normal over prompts: half of the rows with σ = 0.5, half with this.

    All seeds of a row fail on the same prompts.
    """
    sigmas = np.where(np.arange(ROWS) % 2, sigma, 0.5)[:, None, None]

    def draw(random: np.random.Generator, seeds: int) -> np.ndarray:
        of_prompts = sigmas * random.standard_normal((ROWS, 1, PROMPTS)) - sigmas**2 / 2
        return np.exp(of_prompts + copies((0.1, 0.0, 0.3))(random, seeds))

    return draw


def unequal_seeds(sigma: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Errors of equal mean, log-normal over seeds: half of the rows with σ = 0.1."""
    sigmas = np.where(np.arange(ROWS) % 2, sigma, 0.1)[:, None, None]

    def draw(random: np.random.Generator, seeds: int) -> np.ndarray:
        of_seeds = sigmas * random.standard_normal((ROWS, seeds, 1)) - sigmas**2 / 2
        return np.exp(of_seeds + 0.5 * random.standard_normal((ROWS, 1, PROMPTS)))

    return draw


def near_floor(random: np.random.Generator, seeds: int) -> np.ndarray:
    """Rows within a digit of the attainable."""
    # They differ by up to 0.8 digits, which is rounding.
    attainable = 7 + random.standard_normal(PROMPTS)
    behind = random.random((ROWS, 1, 1)) * 0.8
    values = attainable - behind - 0.2 * random.random((ROWS, seeds, PROMPTS))
    return ranked_values(values.reshape(-1, PROMPTS), attainable).reshape(values.shape)


def board_scenarios() -> list[BoardScenario]:
    """All the kinds of boards that are simulated."""
    normal = copies((0.3, 1.0, 0.5))

    def diverging(random: np.random.Generator, seeds: int) -> np.ndarray:
        lost = random.random((ROWS, seeds, 1)) < 0.2
        return np.where(lost, LOST - 3, normal(random, seeds))

    return [
        BoardScenario("copies: digits, normal", normal),
        BoardScenario("copies: digits, seeds differ most", copies((1.0, 0.3, 0.3))),
        *(BoardScenario(f"models: digits, seeds differ by {x}", models(x)) for x in (0.05, 0.2)),
        BoardScenario("models: digits, seeds of some rows differ most", models(0.2, 1.0)),
        *(
            BoardScenario(
                f"models: digits, seeds differ by 0.03, in one row by {most}, {rows} rows",
                apart(*[0.03] * (rows - 1), most),
            )
            for rows in (2, 3, 5)
            for most in (0.3, 1)
        ),
        *_of_errors(),
        BoardScenario("copies: digits, 20% of seeds diverge", diverging),
        *(
            BoardScenario(
                f"copies: digits, {name}" + (f", {rows} rows" if rows < ROWS else ""),
                two_kinds(gain, rate, rows),
            )
            for name, gain, rate in TWO_KINDS
            for rows in (ROWS, ROWS // 4)
        ),
        *(
            BoardScenario(
                f"copies: digits, half of the seeds 2 digits better, alike otherwise, {rows} rows",
                two_kinds(2.0, 0.5, rows, within=0.03),
            )
            for rows in (3, 5)
        ),
        BoardScenario(
            "models: digits, half of the seeds of a quarter of the rows 1 digit better",
            few_of_two_kinds,
        ),
        BoardScenario("identical rows", identical),
        BoardScenario("within a digit of the attainable", near_floor),
        BoardScenario("half of the rows 1 digit better", copies((0.1, 1.0, 0.5)), 1.0),
        BoardScenario("half of the rows 3 digits better", copies((0.3, 1.0, 0.5)), 3.0),
    ]


def _of_errors() -> list[BoardScenario]:
    """Boards that rank by a mean error."""
    heavy = copies((3 * 0.1**0.5, 3 * 0.45**0.5, 3 * 0.45**0.5))
    return [
        BoardScenario(
            "copies: mean error, log-normal σ = 3", lambda *a: np.exp(heavy(*a)), better="lower"
        ),
        *(
            BoardScenario(
                f"models: mean error, log-normal σ = {sigma} over prompts, and σ = 0.5",
                unequal_tails(sigma),
                better="lower",
            )
            for sigma in (1, 2)
        ),
        *(
            BoardScenario(
                f"models: mean error, seeds log-normal σ = {sigma}, and σ = 0.1",
                unequal_seeds(sigma),
                better="lower",
            )
            for sigma in (0.7, 1)
        ),
    ]
