"""Hostile folders of records: each bad record is one line, and every verb goes on without it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forging import reseal

from iclbench import RecordStore, run
from iclbench.runs.objects import Objects
from iclbench.runs.store import read_record

TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 32}


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for model in ("zero", "averaging"):
        run(model=model, **TINY, out=folder / "records")
    run(model="gradient-descent", **{**TINY, "task": "least-squares-prefixes"},
        out=folder / "records")  # fmt: skip
    return folder


@pytest.fixture
def folder(sources, tmp_path) -> Path:
    """Leaderboards whose record of averaging is to be spoiled, with a secret beside them."""
    (tmp_path / "secret").write_text("secret")
    return Path(shutil.copytree(sources, tmp_path / "leaderboards"))


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    return lambda path: reseal(path, change, rename=False) and None


def raw(old: str, new: str) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return spoil


def text(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


def main(content: dict[str, Any]) -> dict[str, Any]:
    return content["evaluations"]["main"]


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_large_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def with_linked_object(path: Path) -> None:
    target = Objects.beside(path).path(read_record(path).main.values["squared_error"])
    target.unlink()
    target.symlink_to(path.parents[3] / "secret")


def uneven(content: dict[str, Any]) -> None:
    main(content)["curves"]["squared_error"] = {
        name: [] if name == "mean" else [1.0] for name in ("values", "mean", "median", "max", "low",
                                                            "high", "interval")
    } | {"axis": "n"}  # fmt: skip


def trained(content: dict[str, Any]) -> None:
    content["training"] = {
        "steps": 2, "batch": 2, "replicas": 1, "seconds": 1.0, "engine": "plain",
        "steps_per_second": 2.0, "curve_steps": [1, 2], "curve": [[0.1] * 3, [0.1] * 3],
    }  # fmt: skip


def shaped(*shape: int) -> Callable[[Path], None]:
    return edit(lambda c: main(c)["values"]["squared_error"].update(shape=list(shape)))


SPOILED: dict[str, Callable[[Path], None]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-30]) and None,
    "empty": text(b""),
    "not UTF-8": text(b"\xff\xfe{}"),
    "nested lists": text(b"[" * 100_000),
    "nested tables": text(b'{"a":' * 100_000),
    "infinite": raw('"parameters": ', '"parameters": 1e999, "more": '),
    "NaN": raw('"parameters": ', '"parameters": NaN, "more": '),
    "5,000 digits": raw('"parameters": ', '"parameters": ' + "9" * 5000 + ', "more": '),
    "a key twice": raw('"parameters": ', '"parameters": 0, "parameters": '),
    "a pipe": as_pipe,
    "a link": as_link,
    "a folder": as_folder,
    "a terabyte": as_large_file,
    "a linked object": with_linked_object,
    "no spec": edit(lambda c: c.update(spec={})),
    "a task that is a path": edit(lambda c: c["spec"].update(task="../../../escape")),
    "a model that is a path": edit(lambda c: c["spec"].update(model="/escape")),
    "weights that are a path": edit(lambda c: c.update(weights={"file": "../../../../secret"})),
    "a metric with markup": edit(lambda c: main(c)["metrics"].update({"<b>": {}})),
    "an uneven curve": edit(uneven),
    "losses of other seeds": edit(trained),
    "values without seeds": shaped(32),
    "values of other seeds": shaped(2, 16),
    "values with four axes": shaped(1, 2, 2, 8),
    "values of 4 exabytes": shaped(1, 2**59),
    "more values than there are": shaped(1, 32, 2),
    "no seeds": edit(lambda c: c.update(seeds=[])),
    "more seeds": edit(lambda c: c.update(seeds=c["seeds"] * 3)),
    "a terminal's escape": edit(lambda c: c["environment"].update(device="\x1b[2Jcpu")),
    "reversed writing": edit(lambda c: c["environment"].update(platform="a\u202eb")),
    "a line break": edit(lambda c: c.update(command=c["command"] + "\n```\n<script>")),
    "half a character": raw('"platform": "', '"platform": "\\ud800'),
    "a long device": edit(lambda c: c["environment"].update(device="x" * 501)),
    "another command": edit(lambda c: c.update(command="```")),
    "an analysis of no seed": edit(lambda c: c.update(analyses={"a": {}})),
}

#: Bad records of which nothing but the values is bad: verbs that read no values accept them.
WITH_BAD_VALUES = {"a linked object", "more values than there are"}


def require_line(path: Path, lines: list[str]) -> None:
    """One line of standard error is about the record in this path, and can be shown."""
    (line,) = [line for line in lines if str(path) in line]
    assert line.startswith("iclbench: error: ")
    assert line.isprintable()
    assert len(line) < 1500


@pytest.mark.parametrize(
    "verb",
    [
        ("show", "{0}"),
        ("verify", "{0}"),
        ("submit", "{0}", "--to", "{0}/new"),
        ("leaderboard", "figure", "{0}", "--x", "model", "--file", "{0}/f.html"),
    ],
)
def test_bad_records_are_a_line_each_and_stop_no_verb(cli, sources, tmp_path, verb):
    shutil.copytree(sources, tmp_path / "sound")
    bad = {}
    for number, name in enumerate(SPOILED):
        store = shutil.copytree(sources / "records", tmp_path / f"bad-{number}")
        for path in store.glob("least-squares/zero-*.json"):
            path.unlink()
        shutil.rmtree(store / "least-squares-prefixes")
        (bad[name],) = store.glob("*/averaging-*.json")
        SPOILED[name](bad[name])
    outcome = cli(*(word.format(tmp_path) for word in verb))
    assert outcome.code == 2
    lines = outcome.err.splitlines()
    read = verb[0] in {"verify", "submit"}
    for name in SPOILED if read else SPOILED.keys() - WITH_BAD_VALUES:
        require_line(bad[name], lines)
    if verb[0] != "leaderboard":
        for model in ("zero", "averaging", "gradient-descent"):
            assert model in outcome.out
    assert not list(tmp_path.rglob("*escape*"))


@pytest.mark.parametrize("name", SPOILED)
def test_a_bad_record_stops_no_board(cli, folder, tmp_path, name):
    path = next((folder / "records").glob("least-squares/averaging-*.json"))
    SPOILED[name](path)
    outcome = cli("leaderboard", "show", "--out", folder / "records", "--commands")
    assert outcome.code == 2
    require_line(path, outcome.err.splitlines())
    assert "zero" in outcome.out
    assert "gradient-descent" in outcome.out
    outcome = cli("leaderboard", "build", folder, "--no-parquet")
    assert outcome.code == 2
    require_line(path, outcome.err.splitlines())
    pages = {p.name: p.read_text("utf-8") for p in folder.rglob("*.md")}
    assert {"README.md", "least-squares.md", "least-squares-prefixes.md"} <= pages.keys()
    assert "zero" in pages["least-squares.md"]
    assert "averaging" not in "".join(pages.values())
    assert not list(tmp_path.rglob("*escape*"))


@pytest.mark.parametrize(
    "name", ["a linked object", "a pipe", "truncated", "more values than there are"]
)
def test_the_site_is_made_of_the_others(cli, folder, tmp_path, name):
    path = next((folder / "records").glob("least-squares/averaging-*.json"))
    SPOILED[name](path)
    outcome = cli("leaderboard", "site", tmp_path / "site", "--from", folder)
    assert outcome.code == 2
    assert str(path) in outcome.err
    assert "secret" not in "".join(
        p.read_text("utf-8", "replace") for p in (tmp_path / "site" / "records").rglob("*.*")
        if p.is_file()
    )  # fmt: skip
    store = RecordStore(tmp_path / "site" / "records")
    assert {read_record(p).spec.model for p in store.paths()} == {"zero", "gradient-descent"}


def test_a_copy_of_a_record_is_not_a_second_row(cli, folder):
    path = next((folder / "records").glob("least-squares/zero-*.json"))
    other = folder / "records" / "ridge"
    other.mkdir()
    shutil.copy(path, other)
    outcome = cli("leaderboard", "show", "--out", folder / "records")
    assert outcome.code == 2
    assert f"{other / path.name}: the record of this run is least-squares/zero-" in outcome.err
    assert outcome.out.count("zero") == 1


def test_a_forged_board_stays_alone(cli, folder):
    """A record that claims to rank otherwise is not compared with the others."""
    path = next((folder / "records").glob("least-squares/averaging-*.json"))
    reseal(path, lambda c: c["ranking"].update(statistic="mean", better="higher"))
    outcome = cli("leaderboard", "show", "--out", folder / "records")
    assert outcome.code == 0
    assert outcome.out.count("least-squares v") == 2


def test_a_site_holds_nothing_that_a_record_says_unescaped(cli, folder, tmp_path):
    attack = "</script><img src=x onerror=alert(1)>"
    path = next((folder / "records").glob("least-squares/averaging-*.json"))

    def change(content: dict[str, Any]) -> None:
        content["environment"].update(device=attack, platform=attack)
        content["spec"]["model_args"] = {attack: attack}
        main(content)["task_args"]["note"] = attack
        main(content)["floor"]["name"] = attack
        content["command"] = f"iclbench run {attack}"

    path = reseal(path, change)
    assert cli("leaderboard", "site", tmp_path / "site", "--from", folder).code == 0
    pages = [p.read_text("utf-8") for p in (tmp_path / "site").rglob("*.html")]
    assert any("onerror" in page for page in pages)
    for page in pages:
        assert "<img" not in page
        assert "default-src 'none'" in page
    figure = tmp_path / "figure.html"
    words = ("--lines", "model_args", "--x", "model", "--title", attack, "--file", figure)
    assert cli("leaderboard", "figure", path, *words).code == 0
    assert "<img" not in figure.read_text("utf-8")


def test_a_records_json_is_what_other_readers_see(folder):
    """The digest of a record with a key twice would fit the last one alone."""
    path = next((folder / "records").glob("least-squares/zero-*.json"))
    assert json.loads(path.read_text())["parameters"] == read_record(path).parameters
