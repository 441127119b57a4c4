"""Commands that plugins add to the command line."""

from __future__ import annotations

import re
import sys

import pytest
from fake_distributions import write_plugin
from fake_plugins import offer, write_odd


def test_command_is_in_the_help_without_being_imported(sample_plugin, cli):
    help_text = cli("--help").out
    assert re.search(r"hello\s+Greet \[some\] body\.", help_text)
    assert "fine_parts" not in sys.modules


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], "hello you\n"),
        (["--name", "X"], "hello X\n"),
        (["a", "--name=X", "b"], "hello X a b\n"),
        (["--", "--name"], "hello you --name\n"),
    ],
)
def test_command_runs_with_its_arguments(sample_plugin, cli, arguments, printed):
    assert cli("hello", *arguments) == (0, printed, "")


def test_command_has_its_own_help(sample_plugin, cli):
    code, out, _ = cli("hello", "--help")
    assert code == 0
    assert "Usage: iclbench hello" in out
    assert "Greet [some] body." in out
    assert "--name" in out


def test_command_refuses_an_unknown_option(sample_plugin, cli):
    code, out, err = cli("hello", "--nmae", "X")
    assert (code, out) == (2, "")
    assert err.startswith("iclbench: error: no such option: --nmae")
    assert err.endswith("see iclbench hello --help\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("target", "code", "told"),
    [("leave", 3, ""), ("abort", 1, "iclbench: aborted\n"), ("answer", 0, "")],
)
def test_command_ends_as_its_function_says(package_folder, cli, target, code, told):
    write_odd(package_folder, "command", f"targets:{target}")
    assert cli("odd") == (code, "", told)


def test_two_providers_of_a_command_clash_when_it_is_called(sample_plugin, cli):
    command = offer("iclbench_commands", "Entry('hello', 'Another.', 'fine_parts:hello')")
    write_plugin(sample_plugin, "other", command)
    code, out, err = cli("hello")
    assert (code, out) == (2, "")
    assert "provided by fine (iclbench-fine 1.2) and other (iclbench-other 1.0)" in err
    assert cli("--help").code == 0


def test_command_of_a_plugin_does_not_replace_one_of_iclbench(package_folder, cli):
    write_plugin(
        package_folder, "usurper", offer("iclbench_commands", "Entry('ls', 'Mine.', 'm:N')")
    )
    for _ in range(2):
        outcome = cli("ls")
        assert outcome.code == 0
        assert "zero" in outcome.out
        reported = "command 'ls' of usurper (iclbench-usurper 1.0) is left out"
        assert outcome.err.count(reported) == 1


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nowhere_at_all:x", "ModuleNotFoundError: No module named"),
        ("exits_on_import:x", "SystemExit: 0"),
        ("targets:NUMBER", "3 is not a function"),
        ("targets:Right", "<class 'targets.Right'> is not a function"),
    ],
)
def test_bad_command_is_an_error_of_its_plugin_when_called(package_folder, cli, target, reason):
    write_odd(package_folder, "command", target)
    assert re.search(r"odd\s+strange", cli("--help").out)
    code, out, err = cli("odd", "--help")
    assert (code, out) == (2, "")
    assert err.startswith("iclbench: error: command 'odd' of odd-ones (iclbench-odd 2.0)")
    assert reason in err
