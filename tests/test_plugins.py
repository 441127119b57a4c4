"""Plugins: found, attributed, isolated when they are broken, and loaded only when used."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_distributions import write_distribution, write_plugin

from iclbench import (
    Architecture,
    Executor,
    Grader,
    Metric,
    PluginError,
    Recipe,
    RecordStore,
    Task,
    UsageError,
    hookimpl,
    hookspecs,
)
from iclbench.cli import app
from iclbench.plugins import PluginHost, host
from iclbench.runs.store import read_record

HOOKS = [name for name in vars(hookspecs) if name.startswith("iclbench_")]
BASES = {
    "model": Architecture,
    "task": Task,
    "recipe": Recipe,
    "metric": Metric,
    "grader": Grader,
    "executor": Executor,
}
RUN = ("run", "--task", "least-squares", "--device", "cpu", "--eval-prompts", 8)

FINE = """
    import time

    time.sleep(0.02)

    @hookimpl
    def iclbench_architectures():
        return [Entry("fine-model", "predicts 0", "fine_parts:Model")]

    @hookimpl
    def iclbench_tasks():
        return [Entry("fine-task", "least squares again", "fine_parts:FineTask")]

    @hookimpl
    def iclbench_recipes():
        return [Entry("fine-recipe", "one step", "fine_parts:RECIPE")]

    @hookimpl
    def iclbench_metrics():
        return [Entry("fine-metric", "always 1", "fine_parts:One")]

    @hookimpl
    def iclbench_graders():
        return [Entry("fine-grader", "always 1", "fine_parts:Grade")]

    @hookimpl
    def iclbench_executors():
        return [Entry("fine-executor", "local again", "fine_parts:Here")]

    @hookimpl
    def iclbench_commands():
        return [Entry("hello", "Greet [some] body.", "fine_parts:hello")]
"""

FINE_PARTS = """
    import torch
    import typer
    from iclbench_least_squares.fixed import LeastSquares
    from iclbench_solvers.simple import Zero

    from iclbench import Grader, Metric, Recipe
    from iclbench.sweeps.executors.local import Local

    RECIPE = Recipe(steps=1, batch=1)


    class Model(Zero):
        name = "fine-model"


    class FineTask(LeastSquares):
        name = "fine-task"


    class One(Metric):
        name = "fine-metric"

        def supports(self, task):
            return None

        def compute(self, model, task, batch, context):
            return {"one": torch.ones(len(batch.target), dtype=torch.float64)}


    class Grade(Grader):
        name = "fine-grader"

        def grade(self, completions, folder):
            return {"one": [1.0] * len(completions)}


    class Here(Local):
        name = "fine-executor"


    def hello(words: list[str] = typer.Argument(default=[]), name: str = "you"):
        print("hello", name, *words)
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An empty folder on the path; what is imported from it is forgotten when the test ends."""
    monkeypatch.delenv("ICLBENCH_PLUGINS", raising=False)
    monkeypatch.setattr(app, "registered_commands", app.registered_commands)
    monkeypatch.syspath_prepend(tmp_path)
    host.cache_clear()
    yield tmp_path
    host.cache_clear()
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.fixture
def fine(site):
    """A plugin with one entry of every kind, all in a module of its own."""
    modules = {"fine_plugin": FINE, "fine_parts": FINE_PARTS}
    write_distribution(site, "iclbench-fine", {"fine": "fine_plugin"}, "1.2", **modules)
    return site


def offer(hook, *entries):
    """The source of a plugin whose hook returns these entries, given as source."""
    return f"@hookimpl\ndef {hook}():\n    return [{', '.join(entries)}]\n"


def offer_model(name, target="iclbench_solvers.simple:Zero"):
    return offer("iclbench_architectures", f"Entry({name!r}, 'a model', {target!r})")


def choose(monkeypatch, *names):
    monkeypatch.setenv("ICLBENCH_PLUGINS", ",".join(names))
    host.cache_clear()


# What is fine


@pytest.mark.parametrize("kind", [*BASES, "command"])
def test_entry_is_attributed_to_its_distribution_and_version(fine, kind):
    name = "hello" if kind == "command" else f"fine-{kind}"
    plugin, entry = PluginHost(only=["fine"]).provider(kind, name)
    assert (plugin.name, plugin.distribution, plugin.version) == ("fine", "iclbench-fine", "1.2")
    assert entry.name == name


@pytest.mark.parametrize("kind", BASES)
def test_entry_loads_when_it_is_used(fine, kind):
    plugins = PluginHost(only=["fine"])
    assert "fine_parts" not in sys.modules
    found = plugins.load(kind, f"fine-{kind}", BASES[kind])
    assert found in vars(sys.modules["fine_parts"]).values()


def test_ls_lists_every_kind_with_its_plugin(fine, cli):
    rows = json.loads(cli("ls", "--json").out)
    of_fine = {row["kind"]: row["name"] for row in rows if row["plugin"].startswith("fine ")}
    assert of_fine == {kind: f"fine-{kind}" for kind in BASES}
    assert {row["plugin"] for row in rows if row["name"].startswith("fine-")} == {
        "fine (iclbench-fine 1.2)"
    }


@pytest.mark.parametrize("kind", BASES)
def test_ls_of_one_kind_lists_that_kind_alone(fine, cli, kind):
    names = [line.split()[0] for line in cli("ls", f"{kind}s").out.splitlines()]
    assert [name for name in names if name.startswith("fine-")] == [f"fine-{kind}"]


def test_plugins_shows_what_a_plugin_provides_and_its_import_time(fine, cli):
    shown = json.loads(cli("plugins", "--json").out)
    (row,) = [row for row in shown["plugins"] if row["name"] == "fine"]
    provided = {kind: [f"fine-{kind}"] for kind in BASES} | {"command": ["hello"]}
    assert row["provides"] == provided
    assert (row["distribution"], row["version"]) == ("iclbench-fine", "1.2")
    assert row["problem"] is None
    assert 0.02 <= row["import_seconds"] < 5


def test_run_uses_plugins_and_records_them(fine, cli):
    out = fine / "records"
    arguments = ("--model", "fine-model", "--task", "fine-task", "--metrics", "fine-metric")
    assert cli("run", *arguments, "--eval-prompts", 8, "--device", "cpu", "--out", out).code == 0
    (path,) = RecordStore(out).paths()
    record = read_record(path)
    named = [(p.name, p.distribution, p.version) for p in record.plugins]
    assert named == [("fine", "iclbench-fine", "1.2")]
    assert record.metrics["one"].mean == 1


def test_command_is_in_the_help_without_being_imported(fine, cli):
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
def test_command_runs_with_its_arguments(fine, cli, arguments, printed):
    assert cli("hello", *arguments) == (0, printed, "")


def test_command_has_its_own_help(fine, cli):
    code, out, _ = cli("hello", "--help")
    assert code == 0
    assert "Usage: iclbench hello" in out
    assert "Greet [some] body." in out
    assert "--name" in out


def test_command_refuses_an_option_that_it_lacks(fine, cli):
    outcome = cli("hello", "--nmae", "X")
    assert outcome.code == 2
    assert "No such option: --nmae" in outcome.err


def test_class_itself_may_be_a_target(site):
    source = """
        from iclbench import Solver

        class Small(Solver):
            name = "small"
            def supports(self, signature, config): return None
            def build(self, signature, config): raise NotImplementedError

        @hookimpl
        def iclbench_architectures():
            return [Entry("small", "in one file", Small)]
    """
    write_plugin(site, "small", source)
    assert PluginHost(only=["small"]).load("model", "small", Architecture).name == "small"


# What is broken

GARBAGE = {
    "no entry": ("'least-squares'", "'least-squares' is no Entry"),
    "no list": ("*5", "iclbench_architectures raised TypeError"),
    "capitals": ("Entry('Bad Name', 's', 'm:N')", "'Bad Name' is not a name"),
    "no name": ("Entry(None, 's', 'm:N')", "None is not a name"),
    "two lines": ("Entry('odd', 'two\\nlines', 'm:N')", "odd: the summary must be one line"),
    "line end": ("Entry('odd', 'one\\n', 'm:N')", "odd: the summary must be one line"),
    "no summary": ("Entry('odd', '', 'm:N')", "odd: the summary must be one line"),
    "no module": ("Entry('odd', 's', 'Name')", "target 'Name' is not of the form 'module:Name'"),
    "twice": ("Entry('odd', 's', 'm:N'), Entry('odd', 't', 'm:O')", "'odd' is given twice"),
}
RAISES = (
    offer_model("half")
    + """
@hookimpl
def iclbench_run_started(spec):
    raise AssertionError("a plugin that is left out observes nothing")

@hookimpl
def iclbench_commands():
    raise {}
"""
)
BROKEN = {
    "raises": ("raise RuntimeError('boom')", "RuntimeError: boom"),
    "raises nothing": ("raise RuntimeError", "RuntimeError"),
    "raises lines": ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
    "exits": ("raise SystemExit(0)", "SystemExit: 0"),
    "lacks a module": ("import nowhere_at_all", "ModuleNotFoundError: No module named"),
    "no Python": ("def", "SyntaxError: "),
    "hook raises": (
        RAISES.format("ValueError('boom')"),
        "iclbench_commands raised ValueError: boom",
    ),
    "hook exits": (RAISES.format("SystemExit(3)"), "iclbench_commands raised SystemExit: 3"),
    "misspelled": (
        offer("iclbench_taks"),
        "unknown hook 'iclbench_taks'; did you mean 'iclbench_tasks'",
    ),
    "unmarked": (
        "def iclbench_tasks(): return []",
        "iclbench_tasks is not marked with @hookimpl",
    ),
    "wrong argument": (
        "@hookimpl\ndef iclbench_run_started(spec, model): pass",
        "'iclbench_run_started'.*'model'",
    ),
    **{
        f"returns {word}": (offer("iclbench_architectures", entries), reason)
        for word, (entries, reason) in GARBAGE.items()
    },
}


@pytest.fixture(params=BROKEN)
def broken(request, site):
    """A broken plugin between two sound ones, by name; the value is its reason."""
    source, reason = BROKEN[request.param]
    write_plugin(site, "ahead", offer_model("model-ahead"))
    write_plugin(site, "broken", source, "0.3")
    write_plugin(site, "later", offer_model("model-later"))
    return reason


def test_broken_plugin_is_reported_once_by_name_version_and_reason(broken):
    (problem,) = PluginHost(only=["broken"]).problems
    start = "plugin broken (iclbench-broken 0.3) is left out: "
    assert problem.startswith(start)
    assert re.search(broken if ".*" in broken else re.escape(broken), problem)
    assert "\n" not in problem


def test_broken_plugin_stays_out_whole_and_stops_no_other(broken):
    plugins = PluginHost(only=["ahead", "broken", "later"])
    plugins.notify("iclbench_run_started", spec=None)
    assert len(plugins.problems) == 1
    assert [entry.name for _, entry in plugins.entries("model")] == ["model-ahead", "model-later"]
    assert {p.name: p.problem is None for p in plugins.plugins} == {
        "ahead": True,
        "broken": False,
        "builtins": True,
        "later": True,
    }


@pytest.fixture
def several_broken(site):
    """Names of broken plugins, beside all that is installed."""
    named = {"exits": "exits", "misspelled": "misspelled", "raising": "hook raises"}
    for name, case in named.items():
        write_plugin(site, name, BROKEN[case][0])
    return list(named)


@pytest.mark.parametrize(
    "arguments",
    [("ls",), ("describe", "zero"), (*RUN, "--model", "zero")],
    ids=lambda arguments: arguments[0],
)
def test_command_that_needs_no_broken_plugin_reports_each_once(
    several_broken, cli, arguments, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    outcome = cli(*arguments)
    assert outcome.code == 0
    assert "zero" in outcome.out
    for name in several_broken:
        assert outcome.err.count(f"plugin {name} (iclbench-{name} 1.0) is left out: ") == 1


def test_plugins_lists_broken_ones_with_their_reasons(several_broken, cli):
    lines = cli("plugins").out.splitlines()
    for name in several_broken:
        label = f"{name} (iclbench-{name} 1.0)"
        assert sum(line.startswith(f"{label}: broken, ") for line in lines) == 1
        assert sum(line.startswith(f"! plugin {label} is left out: ") for line in lines) == 1
    assert any(line.startswith("solvers ") and ": ok, " in line for line in lines)


def test_unknown_name_mentions_what_was_left_out(several_broken):
    with pytest.raises(UsageError, match=r"unknown model 'half'.*left out: raising"):
        PluginHost(only=["raising"]).provider("model", "half")


def test_two_providers_of_a_name_clash_when_it_is_used(site, cli):
    write_plugin(site, "first", offer_model("same"))
    write_plugin(site, "second", offer_model("same") + offer("iclbench_tasks"))
    both = "model 'same' is provided by first (iclbench-first 1.0) and second (iclbench-second 1.0)"
    for arguments in [("describe", "same"), (*RUN, "--model", "same")]:
        outcome = cli(*arguments)
        assert outcome.code == 2
        assert f"error: {both}" in outcome.err
    for arguments in [("describe", "zero"), ("ls",), (*RUN, "--model", "zero", "--dry-run")]:
        outcome = cli(*arguments)
        assert outcome.code == 0
        assert outcome.err.count(both) == 1
        assert "error" not in outcome.err


def test_choosing_plugins_ends_a_clash(site, cli, monkeypatch):
    write_plugin(site, "first", offer_model("zero"))
    choose(monkeypatch, "first")
    assert cli("describe", "zero").out.startswith("model zero, of first (iclbench-first 1.0)")


def test_two_providers_of_a_command_clash_when_it_is_called(fine, cli):
    command = offer("iclbench_commands", "Entry('hello', 'Another.', 'fine_parts:hello')")
    write_plugin(fine, "other", command)
    code, out, err = cli("hello")
    assert (code, out) == (2, "")
    assert "provided by fine (iclbench-fine 1.2) and other (iclbench-other 1.0)" in err
    assert cli("--help").code == 0


def test_command_named_as_one_of_iclbench_leaves_that_alone(site, cli):
    write_plugin(site, "usurper", offer("iclbench_commands", "Entry('ls', 'Mine.', 'm:N')"))
    for _ in range(2):
        outcome = cli("ls")
        assert outcome.code == 0
        assert "zero" in outcome.out
        reported = "command 'ls' of usurper (iclbench-usurper 1.0) is left out"
        assert outcome.err.count(reported) == 1


def test_second_entry_point_of_one_name_is_left_out(site):
    for word in ("one", "two"):
        module = {f"{word}_plugin": offer_model(word)}
        write_distribution(site, f"iclbench-{word}", {"twin": f"{word}_plugin"}, **module)
    plugins = PluginHost(only=["twin"])
    (problem,) = plugins.problems
    assert problem == (
        "plugin twin (iclbench-two 1.0) is left out: its name is taken by twin (iclbench-one 1.0)"
    )
    assert [entry.name for _, entry in plugins.entries("model")] == ["one"]


def test_broken_plugin_takes_no_name(site):
    write_distribution(site, "iclbench-one", {"twin": "one_plugin"}, one_plugin="1 / 0")
    write_distribution(site, "iclbench-two", {"twin": "two_plugin"}, two_plugin=offer_model("two"))
    plugins = PluginHost(only=["twin"])
    assert len(plugins.problems) == 1
    assert plugins.provider("model", "two")[0].distribution == "iclbench-two"


def test_second_name_of_one_module_is_left_out_and_the_first_still_observes(site):
    source = """
        SEEN = []

        @hookimpl
        def iclbench_run_started(spec):
            SEEN.append(spec)
    """
    points = {"name": "named", "other-name": "named"}
    write_distribution(site, "iclbench-named", points, named=source)
    plugins = PluginHost(only=points)
    (problem,) = plugins.problems
    assert problem.endswith("named is plugin name already")
    plugins.notify("iclbench_run_started", spec="a spec")
    assert importlib.import_module("named").SEEN == ["a spec"]


def test_damaged_installation_is_of_unknown_version(site, cli):
    write_plugin(site, "damaged", offer_model("some"))
    (site / "iclbench_damaged-1.0.dist-info" / "METADATA").unlink()
    assert "damaged (unknown unknown): ok" in cli("plugins").out


# ICLBENCH_PLUGINS and --strict


def test_chosen_plugins_alone_are_imported(fine, cli, monkeypatch):
    write_plugin(fine, "other", offer_model("other"))
    choose(monkeypatch, "builtins", " other ", " ")
    assert [plugin.name for plugin in host().plugins] == ["builtins", "other"]
    assert host().problems == []
    assert "fine_plugin" not in sys.modules


def test_chosen_name_that_is_not_here_is_reported_with_the_nearest(fine, cli, monkeypatch):
    choose(monkeypatch, "fin", "builtins")
    code, out, err = cli("ls")
    assert code == 0
    assert "quick" in out
    assert err == (
        "iclbench: ICLBENCH_PLUGINS names 'fin', which is not here; did you mean 'fine'?\n"
    )


def test_empty_choice_loads_none_but_the_harness_s_own(fine, cli, monkeypatch):
    choose(monkeypatch, "")
    found = json.loads(cli("plugins", "--json").out)
    assert [plugin["name"] for plugin in found["plugins"]] == ["builtins"]
    assert found["problems"] == []


def test_entry_points_that_cannot_be_read_stop_no_other(site):
    write_plugin(site, "later", offer_model("model-later"))
    information = site / "damaged-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: damaged\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[iclbench]\nno equals sign\n")
    plugins = PluginHost(only=["later"])
    assert [entry.name for _, entry in plugins.entries("model")] == ["model-later"]
    assert len([p for p in plugins.problems if "entry points of damaged" in p]) == 1


def test_the_first_copy_on_the_path_counts(site, tmp_path, monkeypatch):
    write_plugin(site, "twice", offer_model("old"), version="1.0")
    ahead = tmp_path / "ahead"
    ahead.mkdir()
    monkeypatch.syspath_prepend(str(ahead))
    write_plugin(ahead, "twice", offer_model("new"), version="2.0")
    plugins = PluginHost(only=["twice"])
    assert [(p.name, p.version) for p in plugins.plugins if p.name == "twice"] == [("twice", "2.0")]
    assert plugins.problems == []


STRICT = [("ls",), ("plugins",), (*RUN, "--model", "zero", "--dry-run")]
FIRST_PARTY = ("builtins", "least-squares", "solvers")
PROBLEMS = {
    "plugin odd .* ZeroDivisionError": "1 / 0",
    "model 'averaging' is provided by odd": offer_model("averaging"),
    "command 'run' of odd": offer("iclbench_commands", "Entry('run', 's', 'm:N')"),
    "ICLBENCH_PLUGINS names 'missing'": "",
}


@pytest.mark.parametrize("arguments", STRICT, ids=lambda arguments: arguments[0])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_strict_makes_a_problem_an_error(site, cli, monkeypatch, arguments, problem):
    write_plugin(site, "odd", PROBLEMS[problem])
    choose(monkeypatch, *FIRST_PARTY, "missing" if "missing" in problem else "odd")
    assert cli(*arguments).code == 0
    strict = cli(*arguments, "--strict")
    assert strict.code == 2
    assert re.search(f"^iclbench: error: .*{problem}", strict.err, re.MULTILINE)


@pytest.mark.parametrize("arguments", STRICT, ids=lambda arguments: arguments[0])
def test_strict_accepts_sound_plugins(fine, cli, monkeypatch, arguments):
    choose(monkeypatch, *FIRST_PARTY, "fine")
    assert cli(*arguments, "--strict").code == 0


# Targets

TARGETS = """
    from iclbench import Recipe, Solver
    from iclbench_solvers.simple import Zero

    class Incomplete(Solver):
        name = "odd"

    class Other(Zero):
        name = "other"

    class Right(Zero):
        name = "odd"

    INSTANCE = Right()
    NUMBER = 3
"""
BAD_TARGETS = {
    "missing module": ("model", "nowhere_at_all:X", "ModuleNotFoundError: No module named"),
    "missing name": ("model", "targets:Absent", "AttributeError: "),
    "exits": ("model", "exits_on_import:X", "SystemExit: 0"),
    "function": ("model", "json:dumps", "is no class derived from iclbench.Architecture"),
    "other class": ("model", "targets:Recipe", "is no class derived from iclbench.Architecture"),
    "instance": ("model", "targets:INSTANCE", "is no class derived from iclbench.Architecture"),
    "incomplete": ("model", "targets:Incomplete", "does not define build, supports"),
    "other name": ("model", "targets:Other", "calls itself 'other'"),
    "task": ("task", "targets:Right", "is no class derived from iclbench.Task"),
    "recipe": ("recipe", "targets:Recipe", "is no iclbench.Recipe"),
    "metric": ("metric", "targets:Right", "is no class derived from iclbench.Metric"),
    "grader": ("grader", "targets:Right", "is no class derived from iclbench.Grader"),
}
OPTIONS = {
    "model": ("--model", "odd"),
    "task": ("--task", "odd", "--model", "zero"),
    "recipe": ("--recipe", "odd", "--model", "zero"),
    "metric": ("--metrics", "odd", "--model", "zero"),
    "grader": ("--grader", "odd", "--model", "zero"),
}
HOOK_OF = {
    "model": "iclbench_architectures",
    "task": "iclbench_tasks",
    "recipe": "iclbench_recipes",
    "metric": "iclbench_metrics",
    "grader": "iclbench_graders",
    "command": "iclbench_commands",
}


def write_odd(site, kind, target):
    points = {"odd-ones": "odd_plugin"}
    modules = {
        "odd_plugin": offer(HOOK_OF[kind], f"Entry('odd', 'strange', {target!r})"),
        "targets": TARGETS,
        "exits_on_import": "raise SystemExit(0)",
    }
    write_distribution(site, "iclbench-odd", points, "2.0", **modules)


@pytest.mark.parametrize("case", BAD_TARGETS)
def test_bad_target_is_an_error_of_its_plugin_when_it_is_used(site, cli, case):
    kind, target, reason = BAD_TARGETS[case]
    write_odd(site, kind, target)
    listed = cli("ls")
    assert (listed.code, listed.err) == (0, "")
    assert "odd" in listed.out
    for arguments in [("describe", "odd"), (*RUN, *OPTIONS[kind])]:
        code, _, err = cli(*arguments)
        assert code == 2
        assert err.startswith(f"iclbench: error: {kind} 'odd' of odd-ones (iclbench-odd 2.0)")
        assert reason in err
        assert err.count("\n") == 1


def test_bad_executor_is_an_error_of_its_plugin(site):
    entry = "Entry('odd', 'strange', 'json:JSONEncoder')"
    write_plugin(site, "odd", offer("iclbench_executors", entry))
    with pytest.raises(PluginError, match=r"executor 'odd' of odd \(iclbench-odd 1\.0\).*Executor"):
        PluginHost(only=["odd"]).load("executor", "odd", Executor)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nowhere_at_all:x", "ModuleNotFoundError: No module named"),
        ("exits_on_import:x", "SystemExit: 0"),
        ("targets:NUMBER", "3 is not a function"),
        ("targets:Right", "<class 'targets.Right'> is not a function"),
    ],
)
def test_bad_command_is_an_error_of_its_plugin_when_it_is_called(site, cli, target, reason):
    write_odd(site, "command", target)
    assert re.search(r"odd\s+strange", cli("--help").out)
    code, out, err = cli("odd", "--help")
    assert (code, out) == (2, "")
    assert err.startswith("iclbench: error: command 'odd' of odd-ones (iclbench-odd 2.0)")
    assert reason in err


def test_bad_target_prints_no_traceback(site):
    write_odd(site, "model", "targets:Absent")
    done = run_python("-m", "iclbench", "describe", "odd", path=site)
    assert done.returncode == 2
    assert re.fullmatch("iclbench: error: model 'odd' of odd-ones .*\n", done.stderr)


# Run hooks

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


def test_observer_sees_a_run_from_start_to_finish(site, cli):
    write_plugin(site, "watcher", WATCHER)
    small = ("--model-args", "layers=1,width=4", "--recipe-args", "steps=2,batch=2", "--seeds", 3)
    out = ("--out", site / "records")
    assert cli(*RUN, "--model", "transformer", "--recipe", "smoke", *small, *out).code == 0
    (path,) = RecordStore(site / "records").paths()
    name = read_record(path).id
    first, *steps, last = importlib.import_module("watcher_plugin").SEEN
    assert (first, last) == (("started", name), ("finished", name, name))
    assert steps[-1] == ("step", name, 2, 3)


@pytest.mark.parametrize("error", ["ValueError('boom')", "SystemExit(4)"])
def test_observer_that_raises_is_reported_once_and_dropped(site, cli, error):
    write_plugin(site, "before", WATCHER)
    write_plugin(site, "raiser", RAISER.format(error), "0.2")
    write_plugin(site, "watcher", WATCHER)
    outcome = cli(*RUN, "--model", "zero,averaging", "--out", site / "records")
    assert outcome.code == 0
    assert len(list(RecordStore(site / "records").paths())) == 2
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


def test_plugin_may_bear_the_name_of_an_observer(site):
    write_plugin(site, "progress", WATCHER)
    plugins = PluginHost(only=["progress"])
    observer = Observer()
    plugins.observe(observer, "progress")
    plugins.notify("iclbench_run_started", spec=SimpleNamespace(id="an id"))
    assert observer.seen == ["an id"]
    assert importlib.import_module("progress_plugin").SEEN == [("started", "an id")]


def test_observer_is_forgotten(site):
    plugins, observer = PluginHost(only=[]), Observer()
    plugins.observe(observer, "test")
    plugins.forget(observer)
    plugins.forget(observer)
    plugins.notify("iclbench_run_started", spec=SimpleNamespace(id="an id"))
    assert observer.seen == []


# What is not imported


def run_python(*arguments, path, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(path), "PYTHONUTF8": "1", **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def run_without_heavy_modules(tmp_path):
    """Runs Python, first-party plugins alone, where importing torch or datasets ends it."""
    for name in ("torch", "datasets"):
        source = "raise SystemExit(f'{__name__} was imported')"
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    points = metadata.distribution("iclbench").entry_points.select(group="iclbench")
    chosen = ",".join(point.name for point in points)
    return lambda *arguments: run_python(*arguments, path=tmp_path, ICLBENCH_PLUGINS=chosen)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "import iclbench"),
        ("-m", "iclbench", "--help"),
        ("-m", "iclbench", "ls"),
        ("-m", "iclbench", "ls", "models", "--json"),
        ("-m", "iclbench", "plugins", "--strict"),
    ],
    ids=" ".join,
)
def test_looking_around_imports_neither_torch_nor_datasets(run_without_heavy_modules, arguments):
    done = run_without_heavy_modules(*arguments)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["torch", "datasets"])
def test_importing_a_heavy_module_would_be_noticed(run_without_heavy_modules, name):
    done = run_without_heavy_modules("-c", f"import {name}")
    assert (done.returncode, done.stderr) == (1, f"{name} was imported\n")


# Hooks


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_says_what_it_is_for(hook):
    assert (getattr(hookspecs, hook).__doc__ or "").strip().endswith(".")


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_is_implemented_by_a_plugin_of_the_tests(hook):
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("*.py")]
    assert any(re.search(rf"^ *def {hook}\(", source, re.MULTILINE) for source in sources)
