"""Run hooks, and the documentation of every hook."""

from __future__ import annotations

import asyncio
import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_distributions import write_plugin
from fake_plugins import RUN
from support import only_record

from iclbench import RecordStore, hookimpl, hookspecs
from iclbench.plugins import PluginHost

WATCHER = """
    SEEN = []

    @hookimpl
    def iclbench_run_started(spec):
        SEEN.append(("started", spec.id))

    @hookimpl
    def iclbench_training_step(spec, step, loss):
        SEEN.append(("step", spec.id, step, len(loss)))

    @hookimpl
    def iclbench_run_finished(spec, record):
        SEEN.append(("finished", spec.id, record.id))
"""
RAISER = """
    CALLS = []

    @hookimpl
    def iclbench_run_started(spec):
        CALLS.append("started")
        raise {}

    @hookimpl
    def iclbench_run_finished(spec, record):
        CALLS.append("finished")
"""


def test_observer_sees_a_run_from_start_to_finish(package_folder, cli):
    write_plugin(package_folder, "watcher", WATCHER)
    small = ("--model-args", "layers=1,width=4", "--recipe-args", "steps=2,batch=2", "--seeds", 3)
    out = ("--out", package_folder / "records")
    assert cli(*RUN, "--model", "transformer", "--recipe", "smoke", *small, *out).code == 0
    name = only_record(package_folder / "records").id
    first, *steps, last = importlib.import_module("watcher_plugin").SEEN
    assert (first, last) == (("started", name), ("finished", name, name))
    assert steps[-1] == ("step", name, 2, 3)


@pytest.mark.parametrize("error", ["ValueError('boom')", "SystemExit(4)"])
def test_observer_that_raises_is_reported_once_and_dropped(package_folder, cli, error):
    write_plugin(package_folder, "before", WATCHER)
    write_plugin(package_folder, "raiser", RAISER.format(error), "0.2")
    write_plugin(package_folder, "watcher", WATCHER)
    outcome = cli(*RUN, "--model", "zero,averaging", "--out", package_folder / "records")
    assert outcome.code == 0
    assert len(list(RecordStore(package_folder / "records").paths())) == 2
    reports = [line for line in outcome.err.splitlines() if "raiser" in line]
    (report,) = reports
    start = "iclbench: plugin raiser (iclbench-raiser 0.2) is dropped: iclbench_run_started raised "
    assert report.startswith(start + error.partition("(")[0])
    assert importlib.import_module("raiser_plugin").CALLS == ["started"]
    for other in ("before", "watcher"):
        seen = [event[0] for event in importlib.import_module(f"{other}_plugin").SEEN]
        assert seen == ["started", "finished"] * 2


class Observer:
    def __init__(self):
        self.seen = []

    @hookimpl
    def iclbench_run_started(self, spec):
        self.seen.append(spec.id)


def test_plugin_may_bear_the_name_of_an_observer(package_folder):
    write_plugin(package_folder, "progress", WATCHER)
    plugins = PluginHost(only=["progress"])
    observer = Observer()
    with plugins.observing(observer, "progress"):
        plugins.notify("iclbench_run_started", spec=SimpleNamespace(id="an id"))
    assert observer.seen == ["an id"]
    assert importlib.import_module("progress_plugin").SEEN == [("started", "an id")]


class Cancelled:
    @hookimpl
    def iclbench_run_started(self, spec):
        raise asyncio.CancelledError


def test_an_observer_whose_task_is_cancelled_stops_no_other():
    plugins, observer = PluginHost(only=[]), Observer()
    plugins.add(Cancelled(), "a")
    plugins.add(observer, "b")
    plugins.notify("iclbench_run_started", spec=SimpleNamespace(id="an id"))
    assert observer.seen == ["an id"]
    assert "is dropped: iclbench_run_started raised CancelledError" in plugins.problems[-1]


def test_observer_is_forgotten(package_folder):
    plugins, observer = PluginHost(only=[]), Observer()
    with pytest.raises(ZeroDivisionError), plugins.observing(observer, "test"):
        raise ZeroDivisionError
    plugins.notify("iclbench_run_started", spec=SimpleNamespace(id="an id"))
    assert observer.seen == []


HOOKS = [name for name in vars(hookspecs) if name.startswith("iclbench_")]


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_says_what_it_is_for(hook):
    assert (getattr(hookspecs, hook).__doc__ or "").strip().endswith(".")


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_is_implemented_by_a_plugin_of_the_tests(hook):
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("*.py")]
    assert any(re.search(rf"^ *def {hook}\(", source, re.MULTILINE) for source in sources)
