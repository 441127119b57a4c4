"""`pytest --iclbench`: the kit's checks are tests, in a process of its own."""

from __future__ import annotations

import textwrap

import pytest
from fake_distributions import install_project
from support import run_python

PROJECT = """
[project]
name = "iclbench-said"
version = "1.0"

[project.entry-points.iclbench]
said = "iclbench_said"
"""

#: A command, whose checks import no torch; and one that typer can't run.
MODULE = """
from iclbench import Entry, hookimpl


def say(word: str) -> None:
    print(word)


def shout(word: int | str) -> None:
    print(word)


@hookimpl
def iclbench_commands():
    return [Entry("say", "says it", "iclbench_said:say"), Entry("shout", "too", {target!r})]
"""

TEST = "def test_of_the_project():\n    pass\n"


@pytest.fixture
def run_pytest(tmp_path):
    """Runs pytest in a project whose second command has this target; returns its outcome."""

    def run(target, *arguments):
        project = tmp_path / "project"
        (project / "tests").mkdir(parents=True)
        (project / "pyproject.toml").write_text(textwrap.dedent(PROJECT), "utf-8")
        source = MODULE.format(target=f"iclbench_said:{target}")
        (tmp_path / "iclbench_said.py").write_text(source, "utf-8")
        (project / "tests" / "test_project.py").write_text(TEST, "utf-8")
        install_project(tmp_path, project)
        command = ("-m", "pytest", "-p", "iclbench.kit.pytest_plugin", "-p", "no:cacheprovider",
                   "-p", "no:randomly", "--rootdir", project, project, *arguments)  # fmt: skip
        return run_python(*map(str, command), path=tmp_path, PYTEST_ADDOPTS="")

    return run


@pytest.mark.slow
def test_checks_are_tests_and_failures_are_one_sentence(run_pytest):
    done = run_pytest("shout", "--iclbench", "-v", "-k", "not say")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed, 1 deselected" in done.stdout
    assert "command shout: help: its --help fails" in done.stdout
    assert "Traceback" not in done.stdout
