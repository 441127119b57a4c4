"""Hooks of MkDocs: pages from outside docs/, and links that work in the repository and on the site.

The pages in docs/ link to files of the repository, as they must where a code host shows them. Here
such a link becomes one to the page that the file has on the site, or plain text if it has none.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]

#: Pages of the site that lie elsewhere in the repository: path in the repository → on the site.
ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/iclbench-plugin-hyena-lite/README.md": "guide/example.md",
    **{
        path.relative_to(ROOT).as_posix(): f"{kind}/{path.parent.name.removeprefix('iclbench_')}.md"
        for kind in ("plugins", "tasks")
        for path in sorted((ROOT / kind).glob("*/README.md"))
    },
}

#: Links to these lead to the boards, which `make docs-site` puts beside the pages.
BOARDS = "leaderboards"

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^( *)(`{3,})[^\n]*\n.*?^\1\2 *$", re.M | re.S)
_COG = re.compile(r"^<!-- \[\[\[(?:cog\n.*?\]\]\]|end\]\]\]) -->\n", re.M | re.S)


def on_config(config: Any) -> Any:
    """List the plugins and tasks under Gallery, and the example plugin at the end of the guide."""

    def pages(prefix: str) -> list[str]:
        return [page for page in ELSEWHERE.values() if page.startswith(prefix)]

    (gallery,) = (item["Gallery"] for item in config.nav if "Gallery" in item)
    gallery += [{"Models, solvers and graders": pages("plugins/")}, {"Tasks": pages("tasks/")}]
    (guide,) = (item["Write a plugin"] for item in config.nav if "Write a plugin" in item)
    guide.append({"A complete example": "guide/example.md"})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/."""
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Take out what generates the page, and rewrite links to files of the repository."""
    place = page.file.src_uri
    origin = next((src for src, uri in ELSEWHERE.items() if uri == place), f"docs/{place}")
    markdown = _COG.sub("", markdown)
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [rewritten(markdown[end : fence.start()], origin, place), fence[0]]
        end = fence.end()
    return "".join([*parts, rewritten(markdown[end:], origin, place)])


def rewritten(text: str, origin: str, place: str) -> str:
    """The text with its links for the page at `place`, which comes from the file `origin`."""

    def replace(match: re.Match[str]) -> str:
        bang, label, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        source = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        address = _address(source)
        if address is None:
            return label
        relative = posixpath.relpath(address, posixpath.dirname(place) or ".")
        if source.startswith(BOARDS):
            # Not a page of MkDocs, which would look for it.
            return f'<a href="{relative}">{label}</a>'
        return f"{bang}[{label}]({relative}{'#' + anchor if anchor else ''})"

    return _LINK.sub(replace, text)


def _address(path: str) -> str | None:
    """The page of the site for a path in the repository; None if it has none."""
    if path.startswith(BOARDS):
        return _board_page(path.removeprefix(f"{BOARDS}/"))
    if path.startswith("docs/") and not path.endswith((".py", ".json")):
        return path.removeprefix("docs/")
    for candidate in (path, f"{path}/README.md"):
        if candidate in ELSEWHERE:
            return ELSEWHERE[candidate]
    return None


def _board_page(path: str) -> str:
    """The page of the boards' site that shows a file of the leaderboards; its home for others."""
    name, _, rest = path.partition("/")
    stem = rest.partition("/")[0].removesuffix(".md")
    if path == "findings.md":
        return "boards/findings.html"
    if name in {"tasks", "studies"} and stem:
        return f"boards/{name}/{stem}.html"
    return "boards/index.html"
