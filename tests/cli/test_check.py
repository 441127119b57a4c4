"""`iclbench check`: one line per check, and an exit code."""

from __future__ import annotations

import json

from fake_distributions import write_plugin

COMMANDS = """
    def say(word: str):
        print(word)

    @hookimpl
    def iclbench_commands():
        return [Entry("say", "says it", {target!r})]
"""


def test_a_conforming_package(cli, package_folder):
    write_plugin(package_folder, "said", COMMANDS.format(target="said_plugin:say"))
    outcome = cli("check", "iclbench-said")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "ok           plugin said: loads (importing it is cheap)",
        "ok           command say: help (--help works)",
        "2 ok, 0 not checked, 0 failed",
    ]


def test_a_failed_check_is_exit_code_1(cli, package_folder):
    write_plugin(package_folder, "said", COMMANDS.format(target="said_plugin:shout"))
    outcome = cli("check", "said", "--json")
    assert outcome.code == 1
    _, row = json.loads(outcome.out)
    assert (row["kind"], row["name"], row["status"]) == ("command", "say", "failed")
    assert "has no attribute 'shout'" in row["text"]


def test_the_traceback_of_a_failed_check_is_shown_on_request(cli, package_folder, monkeypatch):
    write_plugin(package_folder, "said", COMMANDS.format(target="said_plugin:shout"))
    assert "Traceback" not in cli("check", "said").err
    monkeypatch.setenv("ICLBENCH_DEBUG", "1")
    outcome = cli("check", "said")
    assert outcome.err.startswith("Traceback")
    assert "failed       command say: help" in outcome.out


def test_an_unknown_package(cli, package_folder):
    outcome = cli("check", "iclbenchh")
    assert (outcome.code, outcome.out) == (2, "")
    assert "did you mean 'iclbench'?" in outcome.err
