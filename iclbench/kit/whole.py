"""The checks that the kit makes of a plugin as a whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..console import counted
from ..discovery import CATALOG_HOOKS, HOOKS, Plugin
from ..leaderboards.descriptions import about_path
from ..leaderboards.studies import sweep_files_of
from ..plugins import host
from ..runs.checks import expect
from ..sweeps.files import read_sweep_file, stages_of
from .parts import check_about
from .trials import Checks, tiny_run, trainable

RUN_HOOKS = tuple(name for name in HOOKS if name not in CATALOG_HOOKS.values())


def checks_of_plugin(plugin: Plugin) -> Checks:
    """The checks of a plugin as a whole."""
    yield "loads", partial(_loads, plugin)
    observed = _run_hooks(plugin)
    if observed and not plugin.problem:
        yield "observes", partial(_observes, plugin, observed)
    if not plugin.problem and about_path(plugin) is not None:
        yield "about", partial(check_about, plugin)
    if not plugin.problem and (files := sweep_files_of(plugin)):
        yield "sweeps", partial(_reads, files)


def _run_hooks(plugin: Plugin) -> list[str]:
    registered = host().hooks_of(plugin)
    return [hook for hook in RUN_HOOKS if hook in registered]


def _loads(plugin: Plugin) -> str:
    """The plugin is sound, and its names are its alone; what importing it imports."""
    expect(plugin.problem is None, str(plugin.problem))
    _expect_no_problem(plugin)
    code = f"import {plugin.module_name}, sys; print(*({{'torch', 'datasets'}} & set(sys.modules)))"
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    expect(done.returncode == 0, f"importing it in a fresh Python fails: {last}")
    heavy = " and ".join(sorted(done.stdout.split()))
    if not any(plugin.entries.values()) and not _run_hooks(plugin):
        return "it provides nothing: a hook must return a list of entries"
    if not heavy:
        return "importing it is cheap"
    return (
        f"importing it imports {heavy}, which slows every command: put what needs it into a module "
        "of its own, and name that in targets, 'package.module:Name'"
    )


def _expect_no_problem(plugin: Plugin, earlier: int = 0) -> None:
    """The host has reported nothing of the plugin, beside its `earlier` problems."""
    # The label of `gd-transformer` ends like that of `transformer`.
    label = re.compile(rf"(?<![\w-]){re.escape(plugin.label)}")
    problems = [problem for problem in host().problems[earlier:] if label.search(problem)]
    expect(not problems, "; ".join(problems))


def _reads(files: Sequence[Path]) -> str:
    """Every file is a valid sweep file, at every size; says how many there are."""
    for path in files:
        file = read_sweep_file(path)
        for sized in (file, *map(file.sized, file.sizes)):
            stages_of(sized)
    return counted(len(files), "sweep file")


def _observes(plugin: Plugin, hooks: list[str]) -> str:
    """A training passes every run hook, and the plugin is not dropped."""
    earlier = len(host().problems)
    model, task = trainable(plugin.distribution)
    tiny_run(model, task.name)
    _expect_no_problem(plugin, earlier)
    return ", ".join(hooks)
