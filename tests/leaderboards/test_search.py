"""What programs read of a site: index.json, the search, tables and the citation."""

from __future__ import annotations

import io
import json
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import yaml

from iclbench import UsageError
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site import citation, search
from iclbench.leaderboards.site.build import make_site
from iclbench.leaderboards.site.links import Links


@pytest.fixture(scope="module")
def site(leaderboards, tmp_path_factory):
    out = tmp_path_factory.mktemp("searched") / "out"
    make_site(out, leaderboards, links=Links("../docs/index.html", "https://example.org/code"))
    return out


def test_the_index_lists_every_row_with_files_of_the_site(site, leaderboards):
    index = json.loads((site / "index.json").read_text("utf-8"))
    rows = {row["id"]: (board, row) for board in index["boards"] for row in board["rows"]}
    known = [(b, row) for b in leaderboard(leaderboards / "records") for row in b.rows]
    assert set(rows) == {row.record.id for _, row in known}
    for known_board, known_row in known:
        board, row = rows[known_row.record.id]
        assert (board["task"], board["dtype"]) == (known_board.task, known_board.dtype)
        assert row["score"] == known_row.score
        assert (site / row["page"]).is_file()
        assert (site / row["record"]).is_file()
    for entry in (*index["tasks"], *index["models"]):
        assert (site / entry["page"]).is_file()


def test_tables_hold_the_same_rows(site):
    table = pd.read_csv(site / "rows.csv")
    parquet = pd.read_parquet(io.BytesIO((site / "rows.parquet").read_bytes()))
    assert list(table["id"]) == list(parquet["id"])
    one = pd.read_csv(site / "tasks" / "least-squares.csv")
    assert set(one["id"]) == set(table["id"][table["task"] == "least-squares"])


def test_the_search_finds_tasks_models_and_runs(leaderboards):
    boards = leaderboard(leaderboards / "records")
    index = search.index(boards, Descriptions(print))
    text = search.script(index, pages=[("Suites", "suites.html")])
    entries = json.loads(text.removeprefix("indexed(").removesuffix(");\n"))
    kinds = {kind: [e for e in entries if e[0] == kind] for kind in ("task", "model", "run")}
    assert ["page", "Suites", "suites.html"] in entries
    for kind, named, page in (
        ("task", "Least squares (least-squares), Liu et al.", "tasks/least-squares.html"),
        ("model", "BaseConv (baseconv), ", "models/baseconv.html"),
    ):
        (found,) = (text for _, text, address in kinds[kind] if address == page)
        assert found.startswith(named)
    assert any(text.startswith("BaseConv (baseconv") for _, text, _ in kinds["run"])
    assert len(kinds["run"]) == sum(len(board.rows) for board in boards)


def test_pages_link_to_source_docs_and_the_citation(site):
    for name, docs in (("index.html", "../docs/index.html"),
                       ("tasks/least-squares.html", "../../docs/index.html")):  # fmt: skip
        page = (site / name).read_text("utf-8")
        assert f'href="{docs}">Documentation' in page
        assert 'href="https://example.org/code">Source' in page
        assert "CITATION.bib" in page


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:x", "a b", '"'])
def test_an_address_of_another_kind_is_refused(address):
    with pytest.raises(UsageError, match="is not an address"):
        Links(source=address)


def test_the_citation_is_that_of_the_repository(site):
    repository = Path(__file__).parents[2]
    known = yaml.safe_load((repository / "CITATION.cff").read_text("utf-8"))
    made = yaml.safe_load((site / "CITATION.cff").read_text("utf-8"))
    for key in ("cff-version", "title", "authors", "version", "license", "type"):
        assert made[key] == known[key]
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"version = {{{project['version']}}}" in citation.bibtex()
    assert citation.bibtex() in (repository / "docs" / "cite.md").read_text("utf-8")


def test_a_citation_names_the_address_of_the_source():
    address = "https://example.org/code"
    assert yaml.safe_load(citation.cff(address))["repository-code"] == address
    assert f"url     = {{{address}}}\n}}" in citation.bibtex(address)
    assert "url" not in citation.bibtex()
    assert "SHA-256 abc" in citation.bibtex(address, "abc")
    (named,) = yaml.safe_load(citation.cff(address, "abc"))["identifiers"]
    assert named["value"] == "sha256:abc"
    assert "identifiers" not in yaml.safe_load(citation.cff(address))
