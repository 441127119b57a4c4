"""`leaderboard site`: write every page of the site from a folder of records."""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ...api.errors import UsageError
from ...console import report
from ...files import STAGING, read_regular_file, staged
from ...runs.heldout import held_out_path
from ...runs.objects import Objects
from ...runs.store import MOST_BYTES
from ..board import Board
from ..build import by_task, published
from ..cited import Cited, read_cited
from ..formats import BOUNDS_LEGEND, DIGITS, LEGEND
from ..overview import overviews
from ..reading import Refused
from ..row import Row
from . import compare, index, run, task

#: Marks the folder of a site, so that no other folder is overwritten.
MARKER = ".iclbench-site"

#: The folders of pages that a later build may leave out; other files in a site's folder stay.
FOLDERS = ("assets", "compare", "data", "records", "runs", "tasks")


def make_site(
    out: str | Path, folder: str | Path = "leaderboards", refused: Refused = report
) -> int:
    """Write the site of `folder`/records to `out`; returns the number of pages.

    `refused` gets a line for each record that is damaged and left out. Raises UsageError if `out`
    holds anything but a site or can't be written, if there is no sound record, or if
    `folder`/cited.toml is not valid; the pages stay as they were then.
    """
    out, folder = Path(out), Path(folder)
    boards, cited = published(folder, refused, whole=True), read_cited(folder)
    if _holds_something_else(out):
        raise UsageError(f"{out} holds something other than a site of iclbench")
    with staged(out) as new:
        site = _Site(new, folder / "records", boards, cited)
        site.write()
    written = {path.relative_to(new) for path in site.written}
    for part in FOLDERS:
        for path in sorted((out / part).rglob("*")):
            if path.is_file() and path.relative_to(out) not in written:
                path.unlink()
    return sum(path.suffix == ".html" for path in site.written)


def _holds_something_else(out: Path) -> bool:
    """Whether `out` is no folder, or holds files without being a site."""
    if not out.exists() or (out / MARKER).exists():
        return False
    # A killed process may have left the start of a site.
    return not out.is_dir() or not all(path.name.startswith(STAGING) for path in out.iterdir())


class _Site:
    """A site that is being written: its templates, and the files so far."""

    def __init__(
        self, out: Path, records: Path, boards: list[Board], cited: dict[str, list[Cited]]
    ) -> None:
        self.out, self.records, self.boards = out, records, boards
        self.written: set[Path] = set()
        self.templates = Environment(
            loader=PackageLoader("iclbench.leaderboards.site"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.tasks, self.cited = by_task(boards), cited

    def write(self) -> None:
        """Write all pages, with the files that they need."""
        self._file(MARKER, b"")
        self.assets = self._assets()
        heat_maps = [index.heat_map(overview) for overview in overviews(self.boards)]
        count = sum(len(board.rows) for board in self.boards)
        self._page("index.html", "index.html", heat_maps=heat_maps, count=count)
        for name, boards in self.tasks.items():
            self._task(name, boards)
        for board in self.boards:
            for row in board.rows:
                self._copy_files(row)
                name = f"runs/{row.record.id}.html"
                self._page("run.html", name, run=run.run(row, board))
                self._file(f"data/{row.record.id}.js", compare.comparison_script(row).encode())

    def _task(self, name: str, boards: list[Board]) -> None:
        sections = [task.section(key, group) for key, group in task.by_evaluation(boards).items()]
        # The evaluation set with the most rows comes first.
        sections.sort(key=lambda section: -len(section["rows"]))
        figures = task.hyperparameter_figures(boards)
        self._page(
            "task.html",
            f"tasks/{name}.html",
            task=name,
            sections=sections,
            cited=self.cited.get(name, []),
            figures=figures,
        )
        self._page(
            "compare.html", f"compare/{name}.html", task=name, choices=compare.choices(boards)
        )

    def _assets(self) -> dict[str, str]:
        """Copy the style, the scripts and Plotly; their names hold a digest of their content."""
        import plotly

        names = {}
        package = resources.files("iclbench.leaderboards.site")
        sources = [package / "assets" / name for name in ("site.css", "site.js", "compare.js")]
        sources.append(resources.files(plotly) / "package_data" / "plotly.min.js")
        for source in sources:
            data = source.read_bytes()
            stem, _, ending = source.name.partition(".")
            name = f"assets/{stem}.{hashlib.sha256(data).hexdigest()[:8]}.{ending}"
            self._file(name, data)
            names[stem if ending != "css" else "style"] = name
        return names

    def _copy_files(self, row: Row) -> None:
        """Copy the record with all its files."""
        self._file(f"records/{row.file}", read_regular_file(self.records / row.file, MOST_BYTES))
        if row.held_out is not None:
            name = held_out_path(PurePosixPath("records", row.file)).as_posix()
            path = held_out_path(self.records / row.file)
            self._file(name, read_regular_file(path, MOST_BYTES))
        objects = Objects(self.records)
        for reference in row.record.files():
            if self.out / "records" / reference.name not in self.written:
                self._file(f"records/{reference.name}", objects.read(reference))

    def _page(self, template: str, name: str, **content: Any) -> None:
        root = "../" * name.count("/")
        text = self.templates.get_template(template).render(
            root=root,
            assets=self.assets,
            tasks=sorted(self.tasks),
            legend=LEGEND,
            digits_legend=DIGITS,
            bounds_legend=BOUNDS_LEGEND,
            **content,
        )
        self._file(name, text.encode())

    def _file(self, name: str, data: bytes) -> None:
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not synced: a site is rebuilt in a minute, and syncing thousands of files is slow.
        path.write_bytes(data)
        self.written.add(path)
