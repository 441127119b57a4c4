"""Compare each model of a study with gradient descent, in a table.

    python -m benchmarks.alignment FOLDER

FOLDER holds the records of runs with `--metrics alignment`.
"""

from __future__ import annotations

from pathlib import Path

from tabulate import tabulate

from iclbench import Board, Record, leaderboard

from . import argument_parser
from .measured import number


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("folder", type=Path)
    for board in leaderboard(parser.parse_args().folder):
        table = tabulate(lines(board), headers="keys", tablefmt="github", disable_numparse=True)
        print(f"{board.description}:\n\n{table}\n")


def lines(board: Board) -> list[dict[str, str]]:
    """A line for each row of a board, best first whatever its origin."""
    names = board.frame()["row"]
    rows = sorted(
        zip(names, board.records, strict=True), key=lambda row: none_last(median_error(row[1]))
    )
    return [{"model": name, **line(record)} for name, record in rows]


def median_error(record: Record) -> float | None:
    """The median error; None if it is not finite."""
    return record.main.metrics["squared_error"].median


def none_last(value: float | None) -> tuple[bool, float]:
    """A key to sort by: numbers, and then what is not finite."""
    return value is None, value or 0.0


def line(record: Record) -> dict[str, str]:
    """Averages of the error, and the medians of the metric `alignment`; ranges are over seeds."""
    diverged = sum(seed.diverged_at is not None for seed in record.seeds)
    trained = [seed.seed for seed in record.seeds if seed.seed is not None]
    metrics = record.main.metrics
    return {
        "median error": number(median_error(record)),
        "mean error": number(metrics["squared_error"].mean),
        "seeds": f"{len(trained) or ''}{f', {diverged} diverged' if diverged else ''}",
        "k": over_seeds(record, "alignment_steps", ".0f"),
        "step": over_seeds(record, "alignment_step_size", ".2f"),
        "distance": number(metrics["alignment_distance"].median),
        "cosine": number(metrics["alignment_cosine"].median, ".3f"),
    }


def over_seeds(record: Record, metric: str, form: str) -> str:
    """The smallest and the largest median of a seed; one number if they look alike."""
    medians = sorted((seed[metric].median for seed in record.main.seeds), key=none_last)
    ends = [number(end, form) for end in (medians[0], medians[-1])]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


if __name__ == "__main__":
    main()
