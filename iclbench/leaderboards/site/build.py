"""`leaderboard site`: every page of the site from a folder of records."""

from __future__ import annotations

import hashlib
import shutil
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ...api.errors import UsageError
from ...api.record import Record
from ...runs.store import RecordStore
from ..build import published
from ..formats import LEGEND
from ..overview import overviews
from ..tables import Board
from . import views

#: In the folder of a site, so that a folder of anything else is never written over.
MARKER = ".iclbench-site"

#: Where pages are that a later build may leave out; anything else in a site's folder stays.
FOLDERS = ("assets", "compare", "data", "records", "runs", "tasks")


def make_site(out: str | Path, folder: str | Path = "leaderboards") -> int:
    """Write the site of `folder`/records to `out`; returns the number of pages.

    Raises UsageError where `out` holds something else, or where there are no records, and
    RecordError for a damaged one; nothing is written then.
    """
    out, folder = Path(out), Path(folder)
    store, boards = published(folder)
    if out.exists() and (not out.is_dir() or any(out.iterdir())) and not (out / MARKER).exists():
        raise UsageError(f"{out} holds something that is no site of iclbench")
    out.mkdir(parents=True, exist_ok=True)
    (out / MARKER).touch()
    site = _Site(out, store, boards)
    site.write()
    for part in FOLDERS:
        for path in sorted((out / part).rglob("*")):
            if path.is_file() and path not in site.written:
                path.unlink()
    return sum(path.suffix == ".html" for path in site.written)


class _Site:
    """One site on its way: its templates, and the files that are written."""

    def __init__(self, out: Path, store: RecordStore, boards: list[Board]) -> None:
        self.out, self.store, self.boards = out, store, boards
        self.written = {out / MARKER}
        self.templates = Environment(
            loader=PackageLoader("iclbench.leaderboards.site"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.tasks: dict[str, list[Board]] = {}
        for board in boards:
            self.tasks.setdefault(board.records[0].spec.task, []).append(board)

    def write(self) -> None:
        """All pages, with what they need."""
        self.assets = self._assets()
        records = [record for board in self.boards for record in board.records]
        heat_maps = [views.heat_map(found) for found in overviews(self.boards)]
        self._page("index.html", "index.html", heat_maps=heat_maps, count=len(records))
        for task, boards in self.tasks.items():
            self._task(task, boards)
        for board in self.boards:
            for standing in board.standings:
                place = self._download(standing.record)
                run = views.run(standing.record, standing.label, place)
                self._page("run.html", f"runs/{standing.record.id}.html", run=run)
                script = f'compared("{standing.record.id}",{views.compared(standing)});\n'
                self._file(f"data/{standing.record.id}.js", script.encode())

    def _task(self, task: str, boards: list[Board]) -> None:
        sections = [views.section(key, own) for key, own in views.groups(boards).items()]
        # The evaluation with the most rows is what is read first.
        sections.sort(key=lambda section: -len(section["rows"]))
        figures = views.task_figures(boards)
        self._page("task.html", f"tasks/{task}.html", task=task, sections=sections, figures=figures)
        self._page(
            "compare.html", f"compare/{task}.html", task=task, choices=views.comparable(boards)
        )

    def _assets(self) -> dict[str, str]:
        """Copy style, scripts and Plotly; their names change with their content."""
        import plotly

        found = {}
        package = resources.files("iclbench.leaderboards.site")
        sources = [package / "assets" / name for name in ("site.css", "site.js", "compare.js")]
        sources.append(resources.files(plotly) / "package_data" / "plotly.min.js")
        for source in sources:
            data = source.read_bytes()
            stem, _, ending = source.name.partition(".")
            name = f"assets/{stem}.{hashlib.sha256(data).hexdigest()[:8]}.{ending}"
            self._file(name, data)
            found[stem if ending != "css" else "style"] = name
        return found

    def _download(self, record: Record) -> PurePosixPath:
        """Copy the record with its files; returns where it is in the site."""
        source = self.store.path(record.spec)
        place = PurePosixPath("records") / record.spec.task / source.name
        names = [source.name, record.per_prompt.file]
        names += [record.weights.file] if record.weights is not None else []
        for name in names:
            target = self.out / "records" / record.spec.task / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.parent / name, target)
            self.written.add(target)
        return place

    def _page(self, template: str, name: str, **content: Any) -> None:
        root = "../" * name.count("/")
        text = self.templates.get_template(template).render(
            root=root, assets=self.assets, tasks=sorted(self.tasks), legend=LEGEND, **content
        )
        self._file(name, text.encode())

    def _file(self, name: str, data: bytes) -> None:
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not atomically: a site is made again in a minute, and syncing thousands of files is slow.
        path.write_bytes(data)
        self.written.add(path)
