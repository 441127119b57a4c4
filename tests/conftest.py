"""Fixtures: the command line in this process, and plugins that exist for one test."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# OpenMP's waiting threads spin by default, which makes tests with several threads ten times slower
# on a busy machine. OpenMP reads this when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Output is the same whatever terminal the tests run in: no colour, no width.
os.environ["NO_COLOR"] = "1"
for _name in ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(_name, None)

import pytest
import torch
from fake_hub import hub
from fake_openai import make_grader, openai_server
from fake_plugins import package_folder, sample_plugin
from hypothesis import settings

from iclbench.api.entry import Entry
from iclbench.discovery import Plugin
from iclbench.plugins import host

# Fixtures that other files define.
__all__ = ["hub", "make_grader", "openai_server", "package_folder", "sample_plugin"]

# No deadline, so that a busy machine fails no test; the same examples every time.
settings.register_profile("iclbench", deadline=None, derandomize=True)
settings.load_profile("iclbench")

# A shell starts programs in the background with SIGINT ignored, and tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True, scope="session")
def _temporary_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the data caches of tasks in a temporary folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ICLBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Run `iclbench ARGS` in this process; return exit code, standard output and error."""

    def run(*args: object) -> Outcome:
        from iclbench.cli import main

        monkeypatch.setattr(sys, "argv", ["iclbench", *map(str, args)])
        capsys.readouterr()
        code: Any = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def provide() -> Iterator[Callable[..., None]]:
    """Add entries to the loaded plugins until the test ends."""
    added = []

    def add(kind: str, name: str, target: Any, plugin: str = "test-plugin") -> None:
        entry = Entry(name, "for a test", target)
        added.append(Plugin(plugin, "test-dist", "1.0", __name__, 0.0, None, {kind: (entry,)}))
        host().plugins.append(added[-1])

    yield add
    for plugin in added:
        host().plugins.remove(plugin)


@pytest.fixture(autouse=True)
def _no_problems_left() -> Iterator[None]:
    """What a plugin of one test does wrong is not reported in the next test of the process."""
    yield
    if host.cache_info().currsize and host().problems:
        host.cache_clear()


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
