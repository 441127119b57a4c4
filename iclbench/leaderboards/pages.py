"""The Markdown pages of `leaderboard build`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from ..api.record import PluginReference
from ..console import capitalized
from . import formats
from .board import Board
from .cited import Cited
from .escaping import markdown
from .formats import LEGEND
from .page_parts import GENERATED, bullets, evaluation_in_words, held_out_legend, table_of
from .rank_legend import UNRANKED, undecided
from .row import PROFILE, Row, in_track


def _score(row: Row) -> str:
    """The score, bold at the floor."""
    text = formats.score(row.score, row.record.ranking)
    return f"**{text}**" if row.at_floor else text


def task_page(task: str, boards: Sequence[Board], cited: Sequence[Cited] = ()) -> str:
    """One task: a table for each dtype, configuration and evaluation set, and cited results."""
    parts = [
        f"{GENERATED}\n\n# {task}",
        f"[All tasks](../README.md) · [Stale rows](../stale.md) · {LEGEND}",
        bullets(_legend()),
    ]
    parts += held_out_legend(boards)
    parts += [_section(board) for board in boards]
    if cited:
        parts.append(_cited(cited))
    return "\n\n".join(parts) + "\n"


def _legend() -> list[str]:
    return [
        "**Rank.** Trained rows of one track are ranked together. `3–5` is the range of ranks that "
        "paired significance tests leave open. A row has no rank if "
        f"{UNRANKED}. "
        "A row is *alone* if no other row of its track could be ranked. All other rows are listed "
        "below for reference, in order of the same statistic.",
        f"**Digits.** {formats.DIGITS}",
        f"**95% interval** of the statistic that ranks. {formats.BOUNDS_LEGEND}.",
        "**1% worst** is the 99th percentile of the metric, or the 1st if higher is better.",
        "**Vs. row above** is the mean paired difference on the same prompts with its 95% "
        "interval, in digits gained if rows are ranked by digits; `*` marks intervals that exclude "
        "0. Unlike ranks, these tests are not corrected for the number of rows.",
        "**Vs. floor** is how many digits the row is short of the floor. **Median** and **mean "
        "error** are those of the metric itself, over seeds and prompts.",
        "**Seeds** says *fewer* if another row of the track has more seeds. **Over seeds** gives "
        "the lowest and the highest score of a seed. **Steps × batch** is training steps × prompts "
        "per step.",
        "**Wall time** is the time to train all seeds, on a machine that may have had other work, "
        "or to evaluate a row that was not trained.",
        "**Parameters** are those that one seed trains.",
    ]


def _section(board: Board) -> str:
    evaluation, ranking = board.evaluation, board.ranking
    name = "" if board.title == board.task else f"{markdown(board.title)} · "
    title = f"## {name}{board.dtype} · {evaluation_in_words(evaluation)}"
    about = (
        f"Version {board.task_version}, ranked by the {ranking.statistic} of {ranking.metric}, "
        f"{ranking.better_score} is better; evaluation seed {evaluation.seed}, "
        f"`{evaluation.digest[:16]}`."
    )
    if text := _ranked(board):
        about += f" {text}"
    if text := undecided(board.undecided):
        about += f" {text}"
    hidden = _hidden(board)
    lines = [*_floor_line(board, hidden), *(_line(row, board, hidden) for row in board.rows)]
    commands = "\n".join(
        f"# {' '.join(filter(None, [formats.rank(row), row.label]))}: {row.file}\n"
        f"{row.record.command}"
        for row in board.rows
    )
    return (
        f"{title}\n\n{about}\n\n{table_of(lines)}\n\n"
        f"<details><summary>Commands</summary>\n\n```bash\n{commands}\n```\n\n</details>"
    )


def _ranked(board: Board) -> str:
    """How many rows are ranked together, in each track; empty where none is ranked."""
    counts = Counter(row.track for row in board.rows if row.rank is not None)
    parts = [f"{n} {in_track(track)}" for track, n in counts.items()]
    return f"Ranked rows: {', '.join(parts)}." if parts else ""


def _floor_line(board: Board, hidden: Container[str]) -> Iterable[dict[str, str]]:
    floor, ranking = board.floor, board.ranking
    if floor is not None:
        yield dict.fromkeys(_line(board.rows[0], board, hidden), "") | {
            "model": markdown(floor.label),
            formats.score_name(ranking): formats.score(floor.score, ranking),
            "median": formats.number(floor.statistics.median, ranking.scale),
            "1% worst": formats.number(floor.worst, ranking.scale),
        }


def _hidden(board: Board) -> set[str]:
    """The columns that say nothing on this board."""
    hidden = set() if board.has_tracks else {"track"}
    hidden |= set() if any(row.held_out for row in board.rows) else {"held out"}
    hidden |= set() if any(row.accuracy is not None for row in board.rows) else {"accuracy"}
    # Where the mean ranks, it is not repeated, and there are no digits to miss.
    return hidden | (
        set() if board.has_digits else {"vs. floor", "mean error", "95% interval of the mean"}
    )


def _line(row: Row, board: Board, hidden: Container[str]) -> dict[str, str]:
    statistics, ranking, environment = row.statistics, board.ranking, row.record.environment
    cells = {
        "rank": formats.rank(row),
        "model": markdown(row.label),
        "origin": markdown(formats.origin(row)),
        "track": markdown(row.track_name),
        formats.score_name(ranking): _score(row),
        "95% interval": formats.score_interval(row),
        "accuracy": "" if row.accuracy is None else formats.linear(row.accuracy),
        "held out": formats.held_out(row),
        "vs. floor": formats.missing_digits(row),
        "notes": formats.notes(row, stale=False),
        "median": formats.number(statistics.median, ranking.scale),
        "1% worst": formats.number(row.worst, ranking.scale),
        "mean error": formats.number(statistics.mean),
        "95% interval of the mean": formats.interval(row.mean_bounds, seeds=row.seeds),
        "vs. row above": formats.difference(row.above, ranking.scale, row.mark_above),
        "seeds": formats.seeds(row),
        "over seeds": formats.spread(row),
        "parameters": formats.parameters(row.record),
        "steps × batch": formats.budget(row.steps, row.batch),
        "wall time": formats.seconds(row.seconds),
        "device": markdown(formats.device(environment.device, environment.threads)),
    }
    return {name: cell for name, cell in cells.items() if name not in hidden}


def _cited(cited: Sequence[Cited]) -> str:
    lines = [
        {
            "model": markdown(entry.model),
            "value": entry.text,
            "metric": markdown(entry.metric),
            "setting": markdown(entry.setting),
            "differs": markdown(entry.differs),
            "source": f"[{markdown(entry.source)}]({entry.url})"
            if entry.url
            else markdown(entry.source),
        }
        for entry in cited
    ]
    about = (
        "Published results that can't be verified here, from [cited.toml](../cited.toml). They "
        "are not ranked. ≈ marks an order of magnitude."
    )
    return f"## Cited\n\n{about}\n\n{table_of(lines)}"


def precision_page(boards: Sequence[Board]) -> str:
    """precision.md: digits against the floor's, with the precision profile."""
    parts = [
        f"{GENERATED}\n\n# Precision",
        f"{formats.DIGITS} Boards rank by mean digits over prompts. Rows are *at the floor* if "
        "their median and 99th percentile are at most one digit worse than the attainable error. "
        "Numbered columns are the precision profile: the percentage of prompts (and seeds) solved "
        "to at least that many digits, up to the first number that no row reaches. A mean or "
        "median hides this. Rows of all tracks and origins are sorted together, without ranks. "
        f"[All tasks](README.md) · {LEGEND}",
    ]
    parts += [_precision_section(board) for board in boards if board.has_digits]
    return "\n\n".join(parts) + "\n"


def _precision_section(board: Board) -> str:
    title = f"## {markdown(board.title)} · {board.dtype} · {evaluation_in_words(board.evaluation)}"
    # No row has more digits than the last of these, which is the first that none reaches.
    most = max((sum(share > 0 for share in row.profile or ()) for row in board.rows), default=0)
    shown = PROFILE[: most + 1]
    lines = [
        {
            "model": f"{formats.mark(row)} {markdown(row.label_in_track)}",
            **({"track": row.track_name} if board.has_tracks else {}),
            "digits": formats.digits(row.score),
            "vs. floor": formats.missing_digits(row),
            **{str(k): _percent(v) for k, v in zip(shown, row.profile or (), strict=False)},
        }
        # By digits, and rows at the floor come first.
        for row in sorted(board.rows, key=lambda row: (not row.at_floor, -row.goodness))
    ]
    floor = "There is no floor."
    if board.floor is not None:
        label = capitalized(markdown(board.floor.label))
        floor = f"{label}: {formats.digits(board.floor.score)} mean digits"
        floor += f" of the {board.ranking.metric}."
    return f"{title}\n\n{floor}\n\n{table_of(lines)}"


def _percent(fraction: float) -> str:
    """Whole percent; never 0 for a few prompts, and never 100 for nearly all."""
    if 0 < fraction < 0.005:
        return "<1"
    return ">99" if 0.995 <= fraction < 1 else f"{100 * fraction:.0f}"


def stale_page(boards: Sequence[Board], installed: Mapping[str, PluginReference]) -> str:
    """stale.md: the rows that the installed code neither made nor checked."""
    lines = [
        {"task": markdown(board.title), "model": markdown(row.label), "dtype": board.dtype,
         "record": row.file, "other code of": ", ".join(row.stale)}
        for board in boards for row in board.rows if row.stale
    ]  # fmt: skip
    count = sum(len(board.rows) for board in boards)
    code = ", ".join(f"{p.name} {p.version} `{p.source[:8]}`" for p in installed.values())
    parts = [
        f"{GENERATED}\n\n# Stale rows",
        f"{len(lines)} of {count} rows were neither made nor checked by the code that built this "
        "page, which may give different numbers. Only this page, the site and "
        "`iclbench leaderboard show` compare rows with the installed code. [All tasks](README.md)",
        f"Installed: {code}.",
    ]
    parts += [table_of(lines)] if lines else []
    return "\n\n".join(parts) + "\n"
