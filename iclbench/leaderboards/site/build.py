"""`leaderboard site`: write every page of the site from a folder of records."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ...api.errors import UsageError
from ...console import report
from ...files import RECORDS, is_free, read_regular_file, staged
from ...runs.heldout import MOST_BYTES as MOST_HELD_OUT_BYTES
from ...runs.heldout import held_out_path
from ...runs.objects import Objects
from ...runs.store import MOST_RECORD_BYTES
from ..board import Board
from ..build import by_task, published
from ..cited import Cited, read_cited
from ..descriptions import Descriptions
from ..export import as_csv, as_parquet, export_table
from ..findings import Judgement, judgements
from ..formats import BOUNDS_LEGEND, DIGITS_OF_ERROR, LEGEND
from ..reading import Refused
from ..row import Row
from . import citation, compare, home, matrix, model, more_pages, run, search, task
from .asset_files import asset_files
from .code import with_code
from .finding_view import summary
from .home_words import home_lines
from .hues import trained_models
from .links import Links
from .minus import with_minus_in_page
from .more_pages import MorePages
from .plots import name_of
from .prompts import Prompts

#: Marks the folder of a site, so that no other folder is overwritten.
MARKER = ".iclbench-site"

#: What a later build may leave out, as files and as folders; others in a site's folder stay.
OPTIONAL = ("findings.html", "studies.html", "suites.html")
FOLDERS = ("assets", "compare", "data", "models", "records", "runs", "tasks",
           *more_pages.FOLDERS)  # fmt: skip


@dataclass(frozen=True)
class Content:
    """What a site shows."""

    folder: Path
    records: Path
    boards: list[Board]
    cited: dict[str, list[Cited]]
    judgements: list[Judgement]
    about: Descriptions
    more: MorePages
    links: Links = field(default_factory=Links)
    #: Whether pages listen for newer ones.
    live: bool = False
    prompts: Prompts = field(default_factory=Prompts)


def make_site(
    out: str | Path,
    folder: str | Path = "leaderboards",
    refused: Refused = report,
    links: Links | None = None,
    *,
    records: Path | None = None,
    live: bool = False,
) -> int:
    """Write the site of `folder`/records, or of `records`, to `out`; returns the number of pages.

    The pages of a `live` site load themselves again when the server that shows them says so.

    `refused` gets a line for each record that is damaged and left out, and for each plugin whose
    descriptions are not valid. Raises UsageError if `out` holds anything but a site or can't be
    written, if there is no sound record, or if `folder`/cited.toml or `folder`/findings.toml is not
    valid; the pages stay as they were then.
    """
    out, folder = Path(out), Path(folder)
    records = records or folder / RECORDS
    boards, judged = published(records, refused, whole=True), judgements(folder, refused)
    about = Descriptions(refused, drawn=trained_models(boards))
    cited = read_cited(folder, (board.task for board in boards))
    content = Content(folder, records, boards, cited, judged, about,
                      MorePages(folder, records, boards, judged, refused, about=about),
                      links or Links(), live)  # fmt: skip
    if not ((out / MARKER).exists() or is_free(out)):
        raise UsageError(f"{out} holds something other than an iclbench site")
    with staged(out) as new:
        site = Site(new, content)
        site.write()
    written = {path.relative_to(new) for path in site.written}
    earlier = [out / name for name in OPTIONAL]
    earlier += [path for part in FOLDERS for path in sorted((out / part).rglob("*"))]
    for path in earlier:
        if path.is_file() and path.relative_to(out) not in written:
            path.unlink()
    return sum(path.suffix == ".html" for path in site.written)


class Site:
    """A site that is being written: its content, its templates, and the files so far."""

    def __init__(self, out: Path, content: Content) -> None:
        self.out, self.content, self.boards = out, content, content.boards
        self.written: set[Path] = set()
        self.templates = Environment(
            loader=PackageLoader("iclbench.leaderboards.site"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters["code"] = with_code
        self.templates.filters["named"] = partial(name_of, about=content.about)
        self.templates.filters["model_title"] = lambda name: content.about.model(name).title
        self.tasks = by_task(content.boards)
        self.menu = self._menu()

    def write(self) -> None:
        """Write all pages, with the files that they need."""
        self._file(MARKER, b"")
        self.assets, files = asset_files()
        for name, data in files.items():
            self._file(name, data)
        self._home()
        for name, boards in self.tasks.items():
            self._task(name, boards)
        for name in model.by_model(self.boards):
            view = model.model(name, self.boards, self.content.about)
            self._page("model.html", f"models/{name}.html", model=view)
        for board in self.boards:
            for row in board.rows:
                self._copy_files(row, self.content.records, "records")
                self._run(row, board, self.content.records, "records")
                self._file(f"data/{row.record.id}.js", compare.comparison_script(row).encode())
        self.content.more.write(self._page, self._copy_files, self._run, self.content.prompts)
        self._data()

    def _run(self, row: Row, board: Board, records: Path, base: str, study: str = "") -> None:
        """Write the page of a record of the folder `records`, whose files are at `base`."""
        view = run.run(row, board, records, base, self.content.prompts)
        view["place"] = shlex.quote(self._place(row, records, base))
        view |= run.described(row, board, self.content.about)
        address = f"{base}/{row.record.id}.html" if study else f"runs/{row.record.id}.html"
        spec = row.record.spec
        has_model = any(about.name == spec.model for about in self.menu["models"])
        self._page("run.html", address, run=view, study=study, has_task=spec.task in self.tasks,
                   has_model=has_model)  # fmt: skip

    def _place(self, row: Row, records: Path, base: str) -> str:
        """The file of a record where a reader has it: in this folder, or in a clone."""
        is_here = self.content.live or not records.is_absolute()
        return (
            (records if is_here else PurePosixPath("leaderboards", base))
            .joinpath(row.file)
            .as_posix()
        )

    def _menu(self) -> dict[str, Any]:
        """What the head and the foot of every page list."""
        about, links = self.content.about, self.content.links
        groups = home.families(self.boards, about)
        return {
            "tasks": {group: [about.task(name) for name in by_task(boards)]
                      for group, boards in groups.items()},
            "models": sorted(
                map(about.model, model.by_model(self.boards)), key=attrgetter("place")
            ),
            "studied": self.content.more.studied,
            "add": self.content.more.add,
            "pages": self.content.more.links,
            "docs": links.docs,
            "source": links.source,
        }  # fmt: skip

    def _home(self) -> None:
        about = self.content.about
        panels = home.panels(self.boards, about)
        self._page(
            "index.html",
            "index.html",
            count=sum(len(board.rows) for board in self.boards),
            task_count=len(self.tasks),
            panels=panels,
            marks=set().union(*(panel["marks"] for panel in panels)),
            compute=home.compute_panel(self.boards, about),
            lines=home_lines(self.boards),
            findings=home.findings(self.content.judgements, about),
            summary=summary(self.content.judgements),
            matrix=matrix.tables(self.boards, about),
        )
        if self.content.judgements:
            self._page("findings.html", "findings.html",
                       summary=summary(self.content.judgements),
                       studies=home.by_study(self.content.judgements, about),
                       pages={s.name: s.notes.question if s.notes else s.title
                              for s in self.content.more.shown})  # fmt: skip

    def _task(self, name: str, boards: list[Board]) -> None:
        view = task.task(name, boards, self.content.about)
        cited = self.content.cited.get(name, [])
        self._page("task.html", f"tasks/{name}.html", task=view, cited=cited)
        table = export_table(row for board in boards for row in board.rows)
        self._file(f"tasks/{name}.csv", as_csv(table))
        self._page(
            "compare.html",
            f"compare/{name}.html",
            task=name,
            title=self.content.about.task(name).title,
            choices=compare.choices(boards, self.content.about),
        )

    def _data(self) -> None:
        """Write what programs read: the index, the table of all rows, and the citation."""
        index = search.index(self.boards, self.content.about)
        self._file("index.json", search.as_json(index))
        studies = [(s.notes.question if s.notes else s.title, s.name)
                   for s in self.content.more.shown]  # fmt: skip
        more = self.content.more
        found = search.script(index, studies, more.studied, more.links)
        self._file("data/search.js", found.encode())
        table = export_table(row for board in self.boards for row in board.rows)
        rows = as_csv(table)
        digest = hashlib.sha256(rows).hexdigest()
        self._file("rows.csv", rows)
        self._file("rows.parquet", as_parquet(table))
        source = self.content.links.source
        code = source if "//" in source else ""
        self._file("CITATION.cff", citation.cff(code, digest).encode())
        self._file("CITATION.bib", citation.bibtex(code, digest).encode())

    def _copy_files(self, row: Row, records: Path, base: str) -> None:
        """Copy a record of the folder `records` with all its files to `base` in the site."""
        self._file(f"{base}/{row.file}", read_regular_file(records / row.file, MOST_RECORD_BYTES))
        if row.held_out is not None:
            name = held_out_path(PurePosixPath(base, row.file)).as_posix()
            path = held_out_path(records / row.file)
            self._file(name, read_regular_file(path, MOST_HELD_OUT_BYTES))
        objects = Objects(records)
        for reference in row.record.files():
            if self.out / base / reference.name not in self.written:
                self._file(f"{base}/{reference.name}", objects.read(reference))

    def _page(self, template: str, name: str, **content: Any) -> None:
        text = self.templates.get_template(template).render(
            root="../" * name.count("/"),
            assets=self.assets,
            menu=self.menu,
            live=self.content.live,
            legend=LEGEND,
            digits_legend=DIGITS_OF_ERROR,
            bounds_legend=BOUNDS_LEGEND,
            **content,
        )
        self._file(name, with_minus_in_page(text).encode())

    def _file(self, name: str, data: bytes) -> None:
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise ValueError(f"{name} is not inside the site")
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not synced: a site is rebuilt in a minute, and syncing thousands of files is slow.
        path.write_bytes(data)
        self.written.add(path)
