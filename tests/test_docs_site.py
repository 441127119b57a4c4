"""The documentation site: built without a network, whole, and its pages ask nobody for anything."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

import iclbench

ROOT = Path(__file__).parents[1]
#: Attributes whose address a browser fetches when it shows a page.
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
}
#: Relations of `link` that are fetched.
RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}

#: Runs MkDocs where every connection fails.
OFFLINE = """
import socket, sys

def refuse(*arguments, **options):
    raise OSError("the build asked for the network")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli()
"""


class Page(HTMLParser):
    """What a page fetches and links to, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        for name, value in values.items():
            is_fetched = (tag, name) in FETCHED
            if tag == "link":
                is_fetched = is_fetched and bool(RELATIONS & set(values.get("rel", "").split()))
            if is_fetched:
                self.fetched.append(value)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site's folder."""
    out = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.mark.slow
def test_the_site_is_whole_and_fetches_nothing(site):
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    assert len(pages) > 40
    for path, page in pages.items():
        external = [url for url in page.fetched if urlsplit(url).scheme or url.startswith("//")]
        assert external == [], path
        for link in page.links:
            if urlsplit(link).scheme or path.name == "404.html":
                continue
            target, anchor = urldefrag(unquote(link))
            file = (path.parent / target).resolve() if target else path
            if "boards" in file.parts:
                continue  # `make docs-site` puts them there
            assert file.exists(), (path.name, link)
            if anchor and file in pages:
                assert anchor in pages[file].anchors, (path.name, link)
    for style in site.rglob("*.css"):
        urls = re.findall(r"url\(\s*['\"]?([^'\")]+)", style.read_text("utf-8"))
        assert [url for url in urls if url.startswith(("http", "//"))] == [], style.name
    _check_search(site)
    _check_reference(pages)


def _check_search(site):
    """The index of the search finds pages of every part of the site."""
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    places = {doc["location"].partition("#")[0] for doc in index["docs"]}
    expected = {"install.html", "tutorial.html", "guide/mixer.html", "reference/tasks.html",
                "plugins/solvers.html", "tasks/stories.html", "cli.html"}  # fmt: skip
    assert expected <= places


def _check_reference(pages):
    """Every public name is in the reference."""
    anchors = {a for path, page in pages.items() if path.parent.name == "reference"
               for a in page.anchors}  # fmt: skip
    tree = ast.parse((ROOT / "iclbench" / "__init__.py").read_text("utf-8"))
    (names,) = (ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", "") == "__all__")  # fmt: skip
    assert [name for name in names if f"iclbench.{name}" not in anchors] == []
    hooks = re.findall(r"^def (iclbench_\w+)", (ROOT / "iclbench/hookspecs.py").read_text(), re.M)
    assert [hook for hook in hooks if f"iclbench.hookspecs.{hook}" not in anchors] == []


def test_every_public_name_has_one_place_in_the_reference():
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs/reference").glob("*.md"))
    listed = re.findall(r"^::: iclbench\.(\w+)$", pages, re.M)
    assert sorted(listed) == sorted([*iclbench.__all__, "hookspecs"])


def test_a_link_out_of_docs_leads_to_its_page_or_is_text(monkeypatch):
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(ROOT / "docs")
    import site_hooks

    def shown(text, place):
        origin = next((o for o, p in site_hooks.ELSEWHERE.items() if p == place), f"docs/{place}")
        return site_hooks.rewritten(text, origin, place)

    solvers = "[solvers](../plugins/iclbench_solvers/README.md)"
    assert shown(solvers, "plugins.md") == "[solvers](plugins/solvers.md)"
    assert shown("[s](../../docs/statistics.md#ranks)", "plugins/solvers.md") == (
        "[s](../statistics.md#ranks)"
    )
    assert shown("[example](../examples/iclbench-plugin-hyena-lite)", "plugins.md") == (
        "[example](guide/example.md)"
    )
    assert shown("[boards](../leaderboards/README.md)", "index.md") == (
        '<a href="boards/index.html">boards</a>'
    )
    for path, page in (("findings.md", "findings"), ("tasks/ridge.md", "tasks/ridge"),
                       ("studies/depth", "studies/depth"), ("tunings", "index")):  # fmt: skip
        assert shown(f"[it](../leaderboards/{path})", "index.md") == (
            f'<a href="boards/{page}.html">it</a>'
        )
    assert shown("[`schema`](record.schema.json)", "records.md") == "`schema`"
    for text in ("[paper](https://arxiv.org/abs/1)", "[below](#executors)"):
        assert shown(text, "plugins.md") == text
