"""`iclbench ls` and `iclbench plugins` list the entries of plugins."""

from __future__ import annotations

import json

import pytest
from fake_plugins import KINDS


def test_ls_lists_every_kind_with_its_plugin(sample_plugin, cli):
    rows = json.loads(cli("ls", "--json").out)
    of_fine = {row["kind"]: row["name"] for row in rows if row["plugin"].startswith("fine ")}
    assert of_fine == {kind: f"fine-{kind}" for kind in KINDS} | {"command": "hello"}
    assert {row["plugin"] for row in rows if row["name"].startswith("fine-")} == {
        "fine (iclbench-fine 1.2)"
    }


@pytest.mark.parametrize("kind", KINDS)
def test_ls_of_one_kind_lists_that_kind_alone(sample_plugin, cli, kind):
    names = [line.split()[0] for line in cli("ls", f"{kind}s").out.splitlines()]
    assert [name for name in names if name.startswith("fine-")] == [f"fine-{kind}"]


def test_commands_are_listed(sample_plugin, cli):
    outcome = cli("ls", "commands")
    assert (outcome.code, "hello" in outcome.out.split()) == (0, True)


def test_plugins_shows_what_a_plugin_provides_and_its_import_time(sample_plugin, cli):
    shown = json.loads(cli("plugins", "--json").out)
    (row,) = [row for row in shown["plugins"] if row["name"] == "fine"]
    provided = {kind: [f"fine-{kind}"] for kind in KINDS} | {"command": ["hello"]}
    assert row["provides"] == provided
    assert (row["distribution"], row["version"]) == ("iclbench-fine", "1.2")
    assert row["problem"] is None
    assert row["import_seconds"] >= 0.02


@pytest.mark.parametrize(
    "arguments",
    [
        ("ls", "--json", "--format", "csv"),
        ("plugins", "--json", "--format", "csv"),
        ("plugins", "--json", "--columns", "plugin"),
    ],
)
def test_a_format_that_would_be_ignored_is_refused(cli, arguments):
    outcome = cli(*arguments)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "--json" in outcome.err


def test_a_plugin_with_many_entries_widens_no_other_line(cli):
    _, _, *rows = cli("plugins").out.splitlines()
    assert sum(len(row) > 250 for row in rows) <= 1
