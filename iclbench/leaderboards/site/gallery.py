"""The studies: a gallery of the papers' figures beside ours, and a page for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...api.errors import IclbenchError, UsageError
from ...api.record import Record
from ...files import STUDIES
from ...plugins import host
from ...runs.store import RecordStore
from ...sweeps.files import QUICK, SweepFile, read_sweep_file
from ...sweeps.sweep import recorded
from .. import formats
from ..board import Board
from ..descriptions import Descriptions
from ..figures.panels import drawn
from ..findings import Judgement
from ..reading import Refused, sound_boards
from ..row import Row
from ..studies import Study, caption, studies
from ..study_notes import StudyNotes, read_notes
from ..verdict_words import when
from .figure import View
from .finding_view import finding_view, in_order, summary
from .minus import with_minus
from .plots import name_of
from .study_figure import published_view, shown_values, study_views
from .study_matrix import study_matrix
from .task_words import short_titles, told_apart_by_evaluation


@dataclass(frozen=True)
class Shown:
    """A folder of a study's records, with all that its pages show."""

    name: str
    boards: list[Board]
    study: Study | None
    notes: StudyNotes | None
    judgements: list[Judgement]
    #: What the notes answer, with the numbers of the records; empty where nothing does.
    answer: str
    #: The figure at each size that has records.
    figures: list[View]

    @property
    def rows(self) -> Iterator[tuple[Row, Board]]:
        """Every row with its board."""
        yield from ((row, board) for board in self.boards for row in board.rows)

    @property
    def title(self) -> str:
        """What the study is called: its name, or its folder's."""
        return self.study.name if self.study else self.name


def shown_studies(
    folder: Path, judged: Sequence[Judgement], refused: Refused, about: Descriptions
) -> list[Shown]:
    """The studies in `folder`/studies that have a sound record, with the findings' verdicts.

    `refused` gets a line for each record that is left out, and for a figure that can't be drawn.
    Raises UsageError if `folder`/studies.toml is not valid.
    """
    parent = folder / STUDIES
    if not parent.is_dir():
        return []
    by_folder = {study.name.replace("/", "-"): study for study in studies(host())}
    notes = read_notes(folder)
    judged = in_order(judged)
    result = []
    for path in sorted(parent.iterdir()):
        boards = sound_boards(RecordStore(path), refused, whole=True) if path.is_dir() else []
        if not boards:
            continue
        study = by_folder.get(path.name)
        noted, judgements = (
            notes.get(path.name),
            [o for o in judged if o.finding.records == path.name],
        )
        records = [record for board in boards for record in board.records]
        try:
            figures = _figures(study, path, records, judgements, about) if study else []
        except UsageError as error:
            refused(f"the figure of {path.name} is left out: {error}")
            figures = []
        shown = Shown(
            name=path.name,
            boards=boards,
            study=study,
            notes=noted,
            answer=_answer(noted, records, refused) if noted else "",
            judgements=judgements,
            figures=figures,
        )
        result.append(shown)
    return result


def _answer(notes: StudyNotes, records: Sequence[Record], refused: Refused) -> str:
    """The answer with its numbers; empty where a further record makes one of them ambiguous."""
    try:
        return notes.answered(records)
    except IclbenchError as error:
        refused(f"the answer of {notes.records} is left out: {error}")
        return ""


def _figures(
    study: Study,
    folder: Path,
    records: Sequence[Record],
    judgements: Sequence[Judgement],
    about: Descriptions,
) -> list[View]:
    """The study's figure at each size that is complete or has verdicts, the most judged first.

    Without any, it is drawn at the size with most records. Raises UsageError where it can't be.
    """
    file = read_sweep_file(study.path)
    sizes = {name: file.sized(name) for name in (QUICK, *file.sizes)}
    members = {name: _members(sized, folder, records) for name, sized in sizes.items()}
    complete = [name for name, (kept, missing) in members.items() if kept and not missing]
    judged = {record.id for judgement in judgements for record in judgement.records}
    chosen = [
        name
        for name, (kept, _) in members.items()
        if name in complete or any(record.id in judged for record in kept)
    ] or [max(members, key=lambda name: len(members[name][0]))]
    others = _of_no_size(records, members) if not complete else []
    figures = [
        _figure(study, name, sizes[name], ([*members[name][0], *others], members[name][1]), about)
        for name in chosen
    ]
    return _judged_first(figures, judgements)


def _judged_first(figures: Sequence[View], judgements: Sequence[Judgement]) -> list[View]:
    """The sizes of a figure, those first of whose records are most verdicts.

    Those whose criterion was written before the run count first.
    """

    def judged(figure: View) -> tuple[int, int]:
        known = [o for o in judgements if any(r.id in figure["values"] for r in o.records)]
        return sum(when(o.finding) == "before the run" for o in known), len(known)

    return sorted(figures, key=judged, reverse=True)


def _members(file: SweepFile, folder: Path, sound: Sequence[Record]) -> tuple[list[Record], int]:
    """The sound records of the sweep in its order, and the number of its runs without one."""
    known = {record.id: record for record in sound}
    result = recorded(file, folder)
    kept = [known[record.id] for record in result.records if record.id in known]
    return kept, len(result.records) + result.missing - len(kept)


def _of_no_size(
    records: Sequence[Record], members: dict[str, tuple[list[Record], int]]
) -> list[Record]:
    """Records made with other arguments than those of the sweep today."""
    known = {record.id for kept, _ in members.values() for record in kept}
    return [record for record in records if record.id not in known]


def _figure(
    study: Study,
    size: str,
    file: SweepFile,
    members: tuple[list[Record], int],
    about: Descriptions,
) -> View:
    records, missing = members
    described = file.figure
    if described is None:
        raise UsageError("the sweep has no figure")
    shown = drawn(described, records)
    flag = "" if size == QUICK else f" --size {size}"
    return {
        "size": size,
        "title": described.title,
        "caption": caption(described.title or study.caption, shown),
        "missing": missing,
        "digits": described.statistic is None and any(r.ranking.has_digits for r in records),
        "parts": study_views(described, records, about),
        "values": {r.id: shown_values(described, r, about) for r in shown},
        "commands": [
            f"iclbench sweep {study.name}{flag} --out results",
            f"iclbench leaderboard figure {study.name}{flag} --records results",
        ],
    }


def gallery(shown: Sequence[Shown], about: Descriptions, waiting: Sequence[Judgement] = ()) -> View:
    """The gallery: a card per study, in groups by paper, and how often each verdict occurs.

    `waiting` are findings of studies without any record.
    """
    papers: dict[str, list[View]] = {}
    for one in shown:
        source = one.notes.source.partition(",")[0] if one.notes else "Other studies"
        papers.setdefault(source, []).append(card(one, about))
    return {
        "papers": sorted(papers.items()),
        "summary": summary([*(o for one in shown for o in one.judgements), *waiting]),
        "count": len(shown),
        "waiting": [finding_view(judgement, about) for judgement in waiting],
    }


def card(one: Shown, about: Descriptions) -> View:
    """What a study's card and page show."""
    return {
        "name": one.name,
        "title": one.title,
        "about": one.study.caption if one.study else "",
        "notes": one.notes,
        "question": one.notes.question if one.notes else "",
        "answer": one.answer,
        "published": published_view(one.notes) if one.notes else None,
        "findings": [finding_view(judgement, about) for judgement in one.judgements],
        "figures": one.figures,
    }


def study_page(one: Shown, about: Descriptions) -> View:
    """A study's own page: its card, models by tasks where it has several, and every record."""
    names = dict(zip(map(id, one.boards), _board_names(one.boards, about), strict=True))
    lines = [
        {
            "id": row.record.id,
            "label": name_of(row, about),
            "board": names[id(board)],
            "origin": formats.origin(row),
            "score_name": formats.score_title(board.ranking, about.metric_of(board)),
            "score": formats.score(row.score, board.ranking),
            "interval": formats.score_interval(row),
            "seeds": row.seeds or "",
            "budget": formats.budget(row.steps, row.batch),
            "file": row.file,
            "drawn": next(
                (
                    with_minus(figure["values"][row.record.id]) or "yes"
                    for figure in one.figures
                    if row.record.id in figure["values"]
                ),
                "",
            ),
        }
        for row, board in one.rows
    ]
    return card(one, about) | {"records": lines, "matrix": study_matrix(one.boards, about)}


def _board_names(boards: Sequence[Board], about: Descriptions) -> list[str]:
    """What each board of a study is called: its task, what tells it from the others, and dtype."""
    names = told_apart_by_evaluation(short_titles(boards, about), boards)
    if len({board.dtype for board in boards}) > 1:  # the names have it then
        return names
    return [f"{name}, {board.dtype}" for name, board in zip(names, boards, strict=True)]
