"""The pages of their own kind: suites, studies, shifts, states, analyses and samples.

A page is written where records hold what it shows; no task and no model is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ..board import Board
from ..build import by_task
from ..descriptions import Description, Descriptions
from ..findings import Judgement
from ..grouping import grouped
from ..reading import Refused
from ..row import Row
from .add import add_view
from .analyses import Measured, Placed, by_metric, metric_page
from .figure import View
from .gallery import gallery, shown_studies, study_page
from .matrices import shift_matrices, state_matrix, state_views
from .prompts import Prompts
from .samples import sample_sets
from .settings import by_evaluation
from .suites import suite_views

#: The folders of these pages in a site.
FOLDERS = ("analyses", "samples", "shifts", "states", "studies")
#: A link's text, and the page that it leads to.
Link = tuple[str, str]


#: Writes a page from a template, its path in the site, and what the template shows.
WritePage = Callable[..., None]
#: Copies a record's files to a folder of the site, whose path in the site is the last argument.
CopyFiles = Callable[[Row, Path, str], None]
#: Writes a record's page: its row and board, that folder and path, and the study's name.
WriteRun = Callable[[Row, Board, Path, str, str], None]


class MorePages:
    """The further pages of a site. `links` are those that every page of the site offers."""

    def __init__(
        self,
        folder: Path,
        records: Path,
        boards: list[Board],
        judged: Sequence[Judgement],
        refused: Refused,
        *,
        about: Descriptions,
    ) -> None:
        self.folder, self.records, self.boards = folder, records, boards
        self.about = about
        self.shown = shown_studies(folder, judged, refused, about)
        names = {one.name for one in self.shown}
        self.waiting = [o for o in judged if o.finding.records not in names]
        self.suites = suite_views(boards, about, refused)
        self.add = add_view(self.suites, boards)
        self.links: list[Link] = [("Suites", "suites.html")] if self.suites else []
        self.links += [("Studies", "studies.html")] if self.shown else []
        self.links += [("Findings", "findings.html")] if judged else []
        self.links += [("Analyses", "matrices.html"), ("Add your model", "add.html")]

    @property
    def studied(self) -> list[tuple[Description, str]]:
        """The tasks that have no board, each with the page of the first study that has records."""
        pages: dict[str, str] = {}
        for one in self.shown:
            for _, board in one.rows:
                pages.setdefault(board.task, f"studies/{one.name}.html")
        known = {board.task for board in self.boards}
        tasks = [(self.about.task(name), page) for name, page in pages.items() if name not in known]
        return sorted(tasks, key=lambda one: one[0].title.casefold())

    def write(self, page: WritePage, copy: CopyFiles, run: WriteRun, prompts: Prompts) -> None:
        """Write all of them, with the files of the studies' records.

        `page` writes a page, `copy` a record's files, and `run` a record's page.
        """
        page("add.html", "add.html", add=self.add)
        if self.suites:
            page("suites.html", "suites.html", suites=self.suites)
        if self.shown:
            page(
                "studies.html",
                "studies.html",
                gallery=gallery(self.shown, self.about, self.waiting),
            )
        several: list[Link] = []
        for one in self.shown:
            base = f"studies/{one.name}"
            view = study_page(one, self.about)
            page("study.html", f"{base}.html", study=view)
            if view["matrix"]:
                several.append((one.title, f"{base}.html#matrix"))
            for row, board in one.rows:
                copy(row, self.folder / base, base)
                run(row, board, self.folder / base, base, one.name)
        kinds = [
            ("Samples", "Prompts with their targets and every model's error, and graded endings.",
             self._of_tasks(page, "samples", partial(self._samples, prompts))),
            ("Shifts", "Models on shifted evaluation distributions.",
             self._of_tasks(page, "shifts", self._shifts)),
            ("State", "The score against the size of a layer's state.",
             self._of_tasks(page, "states", self._states)),
            ("Studies of several tasks", "Models by tasks, such as recall tasks.", several),
            ("Analyses", "Maps, plots and numbers from metrics that look inside a model.",
             self._analyses(page)),
        ]  # fmt: skip
        page("matrices.html", "matrices.html", kinds=[kind for kind in kinds if kind[2]])

    def _of_tasks(
        self, page: WritePage, kind: str, content_of: Callable[[list[Board]], View | None]
    ) -> list[Link]:
        """Write the page of this kind of every task that has something on it.

        As on a task's page, the evaluation set that stands for the task comes first.
        """
        links = []
        for task, boards in by_task(self.boards).items():
            evaluations = by_evaluation(boards).values()
            content = content_of([board for of_set in evaluations for board in of_set])
            if content is not None:
                page(f"{kind}.html", f"{kind}/{task}.html", task=self.about.task(task), **content)
                links.append((self.about.task(task).title, f"{kind}/{task}.html"))
        return links

    def _samples(self, prompts: Prompts, boards: list[Board]) -> View | None:
        sets = sample_sets(boards, self.records, prompts, self.about)
        return {"sets": sets} if sets else None

    def _shifts(self, boards: list[Board]) -> View | None:
        matrices = shift_matrices(boards, self.about)
        return {"matrices": matrices} if matrices else None

    def _states(self, boards: list[Board]) -> View | None:
        views = state_views(boards, self.about)
        groups = grouped(boards, lambda board: board.dtype).values()
        matrices = [m for group in groups if (m := state_matrix(group, self.about))]
        return {"views": views, "matrices": matrices} if views or matrices else None

    def _analyses(self, page: WritePage) -> list[Link]:
        placed: list[Placed] = [(r, board, "runs") for board in self.boards for r in board.rows]
        for one in self.shown:
            placed += [(row, board, f"studies/{one.name}") for row, board in one.rows]
        links, measured = [], Measured(placed)
        for name, members in by_metric(placed).items():
            view = metric_page(name, members, measured, self.about)
            page("analysis.html", f"analyses/{name}.html", analysis=view)
            links.append((view["about"]["title"], f"analyses/{name}.html"))
        return links
