"""How often intervals cover the truth and equal rows are called equal, by simulation.

    python -m benchmarks.coverage [--quick] [--json FILE] [--show FILE]

It prints two tables, for `docs/statistics.md`: intervals of a mean, and the ranks of boards. With
2,000 simulations a share of 95% is known to within 1%. `--show` prints the tables of a file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr
from tabulate import tabulate

from iclbench.api.random import philox
from iclbench.leaderboards.ranking import ranked_values, ranks
from iclbench.runs.intervals import Quantity, mean_interval

PROMPTS, SIMULATIONS, QUICK = 512, 2000, 100
BOARD_PROMPTS, BOARD_ROWS, BOARDS = 256, 20, 1000
#: Simulations that are drawn at once, which bounds the memory.
BLOCK = 100
#: Digits of a prediction that is lost, at 10³ times the root mean square of the targets.
LOST = -3.0

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


def log_normal(sigma: float) -> Draw:
    """Errors whose natural logarithm has deviation σ; a tenth of its variance is that of seeds."""
    sizes = (sigma * 0.1**0.5, sigma * 0.45**0.5, sigma * 0.45**0.5)

    def draw(random: np.random.Generator, seeds: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        values, of_seeds = effects(random, seeds, count, sizes)
        alone = of_seeds[0] if seeds == 1 else np.full(count, sizes[0] ** 2 / 2)
        return np.exp(values), np.exp(alone + (sizes[1] ** 2 + sizes[2] ** 2) / 2)

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
        Scenario("errors, 1% of prompts lost", "error", lost_prompts(errors, lost)),
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
            Scenario(f"fraction {ndtr(z):.3g}", "metric", fraction(z))
            for z in (-3.0, -1.3, 0.0, 2.3, 3.0)
        ),
    ]


def cover(scenario: Scenario, seeds: int, simulations: int) -> dict[str, Any]:
    """The shares of intervals that are printed and that cover, and those of ranges."""
    random = philox("coverage", scenario.name, seeds)
    trusted, covered = [], []
    for start in range(0, simulations, BLOCK):
        values, truth = scenario.draw(random, seeds, min(BLOCK, simulations - start))
        interval = mean_interval(values, scenario.quantity)
        trusted.append(interval.reliable)
        covered.append((interval.low <= truth) & (truth <= interval.high))
    is_interval, holds = np.concatenate(trusted), np.concatenate(covered)
    return {
        "values": scenario.name,
        "seeds": seeds,
        "simulations": simulations,
        "intervals": float(is_interval.mean()),
        "intervals cover": _share(holds[is_interval]),
        "others cover": _share(holds[~is_interval]),
    }


def _share(holds: np.ndarray) -> float | None:
    return float(holds.mean()) if len(holds) else None


@dataclass(frozen=True)
class BoardScenario:
    """Boards of 20 rows: `draw(random, seeds)` gives (rows, seeds, prompts) values that rank.

    The first half of the rows is `gain` better in truth; all rows are alike where it is 0.
    """

    name: str
    draw: Callable[[np.random.Generator, int], np.ndarray]
    gain: float = 0.0


def copies(sizes: tuple[float, float, float]) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Rows of one model, each with its seeds, on the same prompts."""

    def draw(random: np.random.Generator, seeds: int) -> np.ndarray:
        rows = (BOARD_ROWS, seeds)
        values = sizes[0] * random.standard_normal((*rows, 1))
        values = values + sizes[1] * random.standard_normal(BOARD_PROMPTS)
        return np.asarray(
            values + sizes[2] * random.standard_normal((*rows, BOARD_PROMPTS), dtype=np.float32)
        )

    return draw


def board_scenarios() -> list[BoardScenario]:
    """All the kinds of boards that are simulated."""
    normal = copies((0.3, 1.0, 0.5))
    heavy = copies((3 * 0.1**0.5, 3 * 0.45**0.5, 3 * 0.45**0.5))

    def identical(random: np.random.Generator, seeds: int) -> np.ndarray:
        return np.repeat(normal(random, seeds)[:1], BOARD_ROWS, axis=0)

    def near_floor(random: np.random.Generator, seeds: int) -> np.ndarray:
        # Rows within a digit of the attainable differ by up to 0.8 digits, which is rounding.
        attainable = 7 + random.standard_normal(BOARD_PROMPTS)
        behind = random.random((BOARD_ROWS, 1, 1)) * 0.8
        values = attainable - behind - 0.2 * random.random((BOARD_ROWS, seeds, BOARD_PROMPTS))
        return ranked_values(values.reshape(-1, BOARD_PROMPTS), attainable).reshape(values.shape)

    def diverging(random: np.random.Generator, seeds: int) -> np.ndarray:
        lost = random.random((BOARD_ROWS, seeds, 1)) < 0.2
        return np.where(lost, LOST - 3, normal(random, seeds))

    return [
        BoardScenario("copies: digits, normal", normal),
        BoardScenario("copies: digits, seeds differ most", copies((1.0, 0.3, 0.3))),
        BoardScenario("copies: mean error, log-normal σ = 3", lambda *a: np.exp(heavy(*a))),
        BoardScenario("copies: digits, 20% of seeds diverge", diverging),
        BoardScenario("identical rows", identical),
        BoardScenario("within a digit of the attainable", near_floor),
        BoardScenario("half of the rows 1 digit better", copies((0.1, 1.0, 0.5)), 1.0),
        BoardScenario("half of the rows 3 digits better", copies((0.3, 1.0, 0.5)), 3.0),
    ]


def simulate_boards(scenario: BoardScenario, seeds: int, boards: int) -> dict[str, Any]:
    """The share of boards without a false difference, and of the true differences that are seen."""
    random = philox("coverage", scenario.name, seeds)
    clean, seen = [], []
    half = BOARD_ROWS // 2
    for _ in range(boards):
        values = scenario.draw(random, seeds)
        if scenario.gain:
            values[:half] += scenario.gain
        board = ranks(list(values), "higher")
        # A row is at most beaten by the other half, and beats at most the other half.
        groups = (board[:half], board[half:]) if scenario.gain else (board,)
        first = (1, 1 + half)
        last = (half, BOARD_ROWS) if scenario.gain else (BOARD_ROWS,)
        clean.append(all(
            rank.last >= bottom and rank.first <= top
            for group, top, bottom in zip(groups, first, last, strict=False)
            for rank in group
        ))  # fmt: skip
        seen.append(np.mean([rank.first - 1 for rank in board[half:]]) / half)
    return {
        "board": scenario.name,
        "seeds": seeds,
        "simulations": boards,
        "no false difference": float(np.mean(clean)),
        "true differences seen": float(np.mean(seen)) if scenario.gain else None,
    }


def tables(content: dict[str, Any]) -> str:
    """Both tables as Markdown."""
    parts = []
    for name in ("intervals", "boards"):
        rows = [
            {key: _cell(value) for key, value in row.items() if key != "simulations"}
            for row in content[name]
        ]
        align = ("left", *["right"] * (len(rows[0]) - 1))
        parts.append(tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True,
                              colalign=align))  # fmt: skip
    counts = " and ".join(f"{content[name][0]['simulations']:,} {name}" for name in
                          ("intervals", "boards"))  # fmt: skip
    about = (
        f"Per line {counts} are simulated: intervals of {PROMPTS} prompts, boards of {BOARD_ROWS} "
        f"rows on {BOARD_PROMPTS} prompts."
    )
    return "\n\n".join([about, *parts])


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1%}" if isinstance(value, float) else str(value)


def main() -> None:
    """Simulate, print the tables and write them as JSON; or print those of a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few simulations")
    parser.add_argument("--json", type=Path, help="write the shares into this file")
    parser.add_argument("--show", type=Path, help="print the tables of this file")
    arguments = parser.parse_args()
    if arguments.show:
        print(tables(json.loads(arguments.show.read_text("utf-8"))))
        return
    simulations, boards = (QUICK, QUICK // 5) if arguments.quick else (SIMULATIONS, BOARDS)
    content = {
        "intervals": [
            cover(scenario, seeds, simulations)
            for scenario in scenarios()
            for seeds in (1, 3, 5, 10)
            if seeds > 1 or "diverge" not in scenario.name
        ],
        "boards": [
            simulate_boards(scenario, seeds, boards)
            for scenario in board_scenarios()
            for seeds in (3, 5, 10)
        ],
    }
    print(tables(content))
    if arguments.json:
        arguments.json.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
