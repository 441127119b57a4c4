"""What pages say of tasks and models: the plugins' files, and what stands in for them."""

from __future__ import annotations

import re
import tomllib

import pytest

from iclbench import UsageError
from iclbench.api.about import AboutFile, Paper
from iclbench.api.config import parse_config
from iclbench.leaderboards.descriptions import OTHER, Descriptions, read_about
from iclbench.leaderboards.site.formula import mathml
from iclbench.plugins import PluginHost

HOST = PluginHost()
FILES = [(plugin, about) for plugin in HOST.plugins if (about := read_about(plugin)) != AboutFile()]


@pytest.mark.parametrize(("plugin", "about"), FILES, ids=[plugin.name for plugin, _ in FILES])
def test_a_file_describes_what_its_plugin_has(plugin, about):
    for kind, described in (("task", about.tasks), ("model", about.models)):
        assert set(described) <= {entry.name for entry in plugin.entries.get(kind, ())}
    named = {key for one in (*about.tasks.values(), *about.models.values()) for key in one.papers}
    assert named == set(about.papers)


@pytest.mark.parametrize(("plugin", "about"), FILES, ids=[plugin.name for plugin, _ in FILES])
def test_texts_are_sentences_and_formulas_can_be_drawn(plugin, about):
    for one in (*about.tasks.values(), *about.models.values()):
        assert one.text.endswith(".")
        assert "`" not in one.text
        if one.formula:
            drawn = mathml(one.formula)
            assert drawn.startswith("<math")
            # A command that the converter does not know stays as it is.
            assert "\\" not in re.sub(r"<[^>]*>", "", drawn), one.formula
    for task in about.tasks.values():
        assert len(re.findall(r"[.?](?=\s|$)", task.text)) == 2, task.text
        assert task.papers


def test_titles_of_tasks_are_told_apart():
    titles = [task.title for _, about in FILES for task in about.tasks.values()]
    assert len(titles) == len(set(titles))
    titles = [model.title for _, about in FILES for model in about.models.values()]
    assert len(titles) == len(set(titles))


def test_a_task_without_a_file_is_called_by_its_name():
    unknown = Descriptions(print).task("nobody-has-this")
    assert (unknown.title, unknown.group, unknown.text) == ("nobody-has-this", OTHER, "")
    assert unknown.metric("squared_error") == "squared error"


def test_a_file_that_is_not_valid_is_reported_and_left_out(tmp_path, monkeypatch):
    package = tmp_path / "about_test_package"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from iclbench import Entry, hookimpl\n"
        "@hookimpl\ndef iclbench_tasks():\n"
        "    return [Entry('odd', 'an odd task', 'about_test_package:nothing')]\n"
    )
    (package / "about.toml").write_text("[tasks.odd]\ntitle = 'Odd'\n")
    monkeypatch.syspath_prepend(tmp_path)
    import about_test_package

    host = PluginHost(only=[])
    host.add(about_test_package, "odd-plugin")
    plugin = host.plugins[-1]
    object.__setattr__(plugin, "module", "about_test_package")
    with pytest.raises(UsageError, match=r"about\.toml: .*group"):
        read_about(plugin)
    problems = []
    described = Descriptions(problems.append, host).task("odd")
    assert (described.title, described.text) == ("odd", "An odd task.")
    assert len(problems) == 1
    assert "\n" not in problems[0]


@pytest.mark.parametrize(
    ("authors", "short"),
    [
        ("Ada Lovelace", "Lovelace 1843"),
        ("Albert Gu and Tri Dao", "Gu and Dao 1843"),
        ("A. One and B. Two and C. Three", "One et al. 1843"),
        ("Ada Lovelace and others", "Lovelace et al. 1843"),
        ("von Oswald, Johannes", "von Oswald 1843"),
        ("King, Jr., Martin L. and St. John, Ann", "King and St. John 1843"),
    ],
)
def test_a_paper_has_a_short_name(authors, short):
    paper = Paper(title="Notes", authors=authors, year=1843, url="https://example.org/notes")
    assert paper.short == short
    assert f"author = {{{authors}}}" in paper.bibtex("key")


@pytest.mark.parametrize(
    "authors", ["Felix A. Gers, Jürgen Schmidhuber and Fred Cummins", "Ann Me, Bo You, Cy Who"]
)
def test_authors_joined_by_commas_are_refused(authors):
    with pytest.raises(ValueError, match="join names by `and`"):
        Paper(title="t", authors=authors, year=2000, url="https://example.org/t")


@pytest.mark.parametrize("url", ["javascript:alert(1)", "http://a.org", 'https://a.org/"x'])
def test_an_address_of_another_kind_is_refused(url):
    with pytest.raises(ValueError, match="url"):
        Paper(title="t", authors="A B", year=2000, url=url)


def test_a_paper_must_be_in_the_file():
    text = "[models.m]\ntitle = 'M'\ntext = 'It is one.'\npapers = ['missing']\n"
    with pytest.raises(ValueError, match="no paper 'missing'"):
        AboutFile.model_validate(tomllib.loads(text))


def test_a_formula_that_cannot_be_drawn_is_shown_as_text():
    assert mathml("") == ""
    assert mathml(r"\left( <b>") == r"<code>\left( &lt;b&gt;</code>"


@pytest.mark.parametrize("authors", ["", "Ada Lovelace and ", " and Ada", "A and  and B"])
def test_a_paper_without_a_name_is_refused(authors):
    with pytest.raises(UsageError, match="a name is missing"):
        parse_config(
            Paper, {"title": "t", "authors": authors, "year": 1843, "url": "https://a.b"}, "paper"
        )


def test_what_a_plugin_s_metric_measures_has_a_name_on_every_task():
    descriptions = Descriptions(pytest.fail)
    for task in ("least-squares", "least-squares-prefixes", "not-installed"):
        name = descriptions.task(task).metric("alignment_by_steps")
        assert name == "squared distance from k steps of gradient descent"
    assert descriptions.task("least-squares").metric("not_described") == "not described"
