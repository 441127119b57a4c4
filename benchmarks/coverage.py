"""How often intervals cover the truth and equal rows are called equal, by simulation.

    python -m benchmarks.coverage [--quick] [--json FILE] [--add] [--show FILE]

It prints three tables, for `docs/statistics.md`: intervals of a mean, the ranks of boards and those
of suites. With 4,000 simulations a share of 95% is known to within 0.7%. `--add` keeps what the
file has and simulates what it lacks; each row has random numbers of its own. `--show` prints the
tables of a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from iclbench.api.random import philox
from iclbench.files import write_atomically
from iclbench.leaderboards.ranking import ranks
from iclbench.runs.intervals import mean_interval

from . import argument_parser, coverage_boards, coverage_suites
from .coverage_boards import BoardScenario, board_scenarios
from .coverage_scenarios import PROMPTS, Scenario, scenarios
from .coverage_suites import SuiteScenario, has_false_order, suite_scenarios

#: Simulations of each kind of interval, board and suite; of all, in a quick run.
COUNTS, QUICK = (4000, 1000, 1000), 100
#: Simulations that are drawn at once, which bounds the memory.
BLOCK = 100

#: The rows of each table.
Rows = dict[str, list[dict[str, Any]]]


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


def simulate_boards(scenario: BoardScenario, seeds: int, boards: int) -> dict[str, Any]:
    """The share of boards without a false difference, and of the true differences that are seen."""
    random = philox("coverage", scenario.name, seeds)
    clean, seen = [], []
    half = coverage_boards.ROWS // 2
    for _ in range(boards):
        values = scenario.draw(random, seeds)
        if scenario.gain:
            values[:half] += scenario.gain
        rows = len(values)
        board = ranks(list(values), scenario.better, in_digits=scenario.better == "higher")
        # A row is at most beaten by the other half, and beats at most the other half.
        groups = (board[:half], board[half:]) if scenario.gain else (board,)
        first = (1, 1 + half)
        last = (half, rows) if scenario.gain else (rows,)
        clean.append(all(
            rank.last >= bottom and rank.first <= top
            for group, top, bottom in zip(groups, first, last, strict=False)
            for rank in group
        ))  # fmt: skip
        if scenario.gain:
            seen.append(np.mean([rank.first - 1 for rank in board[half:]]) / half)
    return {
        "board": scenario.name,
        "seeds": seeds,
        "simulations": boards,
        "no false difference": float(np.mean(clean)),
        "true differences seen": float(np.mean(seen)) if scenario.gain else None,
    }


def simulate_suites(scenario: SuiteScenario, seeds: int, suites: int) -> dict[str, Any]:
    """The share of suites on which no equal models are called different."""
    random = philox("coverage", scenario.name, seeds)
    false = [has_false_order(scenario, random, seeds) for _ in range(suites)]
    return {
        "suite": scenario.name,
        "seeds": seeds,
        "simulations": suites,
        "no false difference": 1.0 - float(np.mean(false)),
    }


def tables(content: dict[str, Any]) -> str:
    """The tables as Markdown, one column for each number of seeds."""
    intervals, boards, suites = (content[kind] for kind in ("intervals", "boards", "suites"))
    return "\n\n".join(
        [
            f"Intervals of {PROMPTS} prompts, {intervals[0]['simulations']:,} of each kind:",
            _table(intervals, "values", _interval_cell),
            f"Boards of {coverage_boards.ROWS} rows, or as many as named, on "
            f"{coverage_boards.PROMPTS} prompts, {boards[0]['simulations']:,} of each kind:",
            _table(boards, "board", _board_cell),
            f"Suites of {coverage_suites.MODELS} models, on {coverage_suites.PROMPTS} prompts per "
            f"board, {suites[0]['simulations']:,} of each kind:",
            _table(suites, "suite", lambda row: f"{row['no false difference']:.1%}"),
        ]
    )


def _table(rows: list[dict[str, Any]], name: str, cell: Callable[[dict[str, Any]], str]) -> str:
    lines: dict[str, dict[str, str]] = {}
    for row in rows:
        seeds = f"{row['seeds']} seed{'s' if row['seeds'] > 1 else ''}"
        lines.setdefault(row[name], {name: row[name]})[seeds] = cell(row)
    columns = dict.fromkeys(key for line in lines.values() for key in line)
    order = [name, *sorted(columns.keys() - {name}, key=lambda seeds: int(seeds.split()[0]))]
    cells = [[line.get(column, "") for column in order] for line in lines.values()]
    align = ("left", *["right"] * (len(order) - 1))
    return tabulate(cells, order, tablefmt="github", disable_numparse=True, colalign=align)


def _interval_cell(row: dict[str, Any]) -> str:
    """95.0%, or `94.1% of 80%; 100%` if 80% have an interval; less than half a percent is none."""
    covered, others = row["intervals cover"], row["others cover"]
    if others is None:
        return f"{covered:.1%}"
    if covered is None or row["intervals"] < 0.005:
        return f"none; {others:.0%}"
    if row["intervals"] > 0.995:
        return f"{covered:.1%}"
    return f"{covered:.1%} of {row['intervals']:.0%}; {others:.0%}"


def _board_cell(row: dict[str, Any]) -> str:
    """99.0%, and the share of true differences that are seen."""
    seen = row["true differences seen"]
    return f"{row['no false difference']:.1%}" + ("" if seen is None else f"; {seen:.0%} seen")


def main() -> None:
    """Simulate, print the tables and write them as JSON; or print those of a file."""
    parser = argument_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="few simulations")
    parser.add_argument("--json", type=Path, help="write the shares into this file")
    parser.add_argument("--add", action="store_true", help="keep what the file of --json has")
    parser.add_argument("--show", type=Path, help="print the tables of this file")
    arguments = parser.parse_args()
    if arguments.show:
        print(tables(json.loads(arguments.show.read_text("utf-8"))))
        return
    if arguments.add and not arguments.json:
        parser.error("--add needs --json")
    known: Rows = {}
    if arguments.add and arguments.json.exists():
        known = json.loads(arguments.json.read_text("utf-8"))
    content: Rows = {}
    for kind, (simulate, rows) in _plan(quick=arguments.quick).items():
        content[kind] = []
        for row in rows:
            content[kind].append(_known(known.get(kind, ()), row) or simulate(*row))
            if arguments.json:
                # Simulating takes hours: `--add` goes on from here.
                _write(arguments.json, _with_others(content, known))
    print(tables(content))
    if arguments.json:
        _write(arguments.json, content)


def _with_others(content: Rows, known: Rows) -> Rows:
    """What was simulated so far, and every other row of the file."""
    done = {kind: content.get(kind, []) for kind in {**known, **content}}
    return {
        kind: rows + [row for row in known.get(kind, []) if row not in rows]
        for kind, rows in done.items()
    }


def _write(path: Path, content: Rows) -> None:
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def _plan(*, quick: bool) -> dict[str, tuple[Callable[..., dict[str, Any]], list[Any]]]:
    """What is simulated: for each table the function, and its arguments for each row."""
    intervals, boards, suites = (QUICK, QUICK // 5, QUICK // 5) if quick else COUNTS
    by_seeds = [
        (scenario, seeds, intervals)
        for scenario in scenarios()
        for seeds in (1, 2, 3, 5, 10)
        if seeds > 1 or "diverge" not in scenario.name
    ]
    several = (2, 3, 5, 10)
    return {
        "intervals": (cover, by_seeds),
        "boards": (simulate_boards, [(b, s, boards) for b in board_scenarios() for s in several]),
        "suites": (simulate_suites, [(x, s, suites) for x in suite_scenarios() for s in several]),
    }


def _known(rows: Sequence[dict[str, Any]], planned: tuple[Any, int, int]) -> dict[str, Any] | None:
    """The row of this scenario with as many seeds and simulations, if a file has it."""
    scenario, seeds, simulations = planned
    same = (
        row
        for row in rows
        if scenario.name in row.values()
        and (row["seeds"], row["simulations"]) == (seeds, simulations)
    )
    return next(same, None)


if __name__ == "__main__":
    main()
