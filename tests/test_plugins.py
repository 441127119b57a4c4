"""The catalog: use by name, imports on first use, collisions, ICLBENCH_PLUGINS, --strict."""

from __future__ import annotations

import json
import re
import sys

import pytest
from fake_distributions import write_plugin
from fake_plugins import BASES, RUN, choose_plugins, offer, offer_model, write_odd
from layout import ROOT
from support import only_record, run_python
from test_docs import blocks

from iclbench import Architecture, Executor, PluginError, Task
from iclbench.plugins import PluginHost, host
from iclbench_least_squares.fixed import LeastSquares


@pytest.mark.parametrize("kind", BASES)
def test_entry_loads_when_it_is_used(sample_plugin, kind):
    plugins = PluginHost(only=["fine"])
    assert "fine_parts" not in sys.modules
    loaded = plugins.load(kind, f"fine-{kind}", BASES[kind])
    assert loaded in vars(sys.modules["fine_parts"]).values()


def test_run_uses_plugins_and_records_them(sample_plugin, cli):
    out = sample_plugin / "records"
    arguments = ("--model", "fine-model", "--task", "fine-task", "--metrics", "fine-metric")
    assert cli("run", *arguments, "--eval-prompts", 8, "--device", "cpu", "--out", out).code == 0
    record = only_record(out)
    named = [(p.name, p.distribution, p.version) for p in record.plugins]
    assert named == [("iclbench", "iclbench", "0.1.0"), ("fine", "iclbench-fine", "1.2")]
    assert record.metrics["one"].mean == 1


def test_class_may_be_a_target(package_folder):
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
    write_plugin(package_folder, "small", source)
    assert PluginHost(only=["small"]).load("model", "small", Architecture).name == "small"


def test_two_providers_of_a_name_clash_when_it_is_used(package_folder, cli):
    write_plugin(package_folder, "first", offer_model("same"))
    write_plugin(package_folder, "second", offer_model("same") + offer("iclbench_tasks"))
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


def test_choosing_plugins_ends_a_clash(package_folder, cli, monkeypatch):
    write_plugin(package_folder, "first", offer_model("zero"))
    choose_plugins(monkeypatch, "first")
    assert cli("describe", "zero").out.startswith(
        "zero: model of the plugin first (iclbench-first 1.0)"
    )


BAD_TARGETS = {
    "missing module": ("model", "nowhere_at_all:X", "ModuleNotFoundError: No module named"),
    "missing name": ("model", "targets:Absent", "AttributeError: "),
    "exits": ("model", "exits_on_import:X", "SystemExit: 0"),
    "function": ("model", "json:dumps", "is not a subclass of iclbench.Architecture"),
    "other class": ("model", "targets:Recipe", "is not a subclass of iclbench.Architecture"),
    "instance": ("model", "targets:INSTANCE", "is not a subclass of iclbench.Architecture"),
    "incomplete": ("model", "targets:Incomplete", "does not define build, supports"),
    "other name": ("model", "targets:Other", "calls itself 'other'"),
    "task": ("task", "targets:Right", "is not a subclass of iclbench.Task"),
    "recipe": ("recipe", "targets:Recipe", "is not an iclbench.Recipe"),
    "metric": ("metric", "targets:Right", "is not a subclass of iclbench.Metric"),
    "grader": ("grader", "targets:Right", "is not a subclass of iclbench.Grader"),
}
OPTIONS = {
    "model": ("--model", "odd"),
    "task": ("--task", "odd", "--model", "zero"),
    "recipe": ("--recipe", "odd", "--model", "zero"),
    "metric": ("--metrics", "odd", "--model", "zero"),
    "grader": ("--grader", "odd", "--model", "zero"),
}


@pytest.mark.parametrize("case", BAD_TARGETS)
def test_bad_target_is_an_error_of_its_plugin_when_it_is_used(package_folder, cli, case):
    kind, target, reason = BAD_TARGETS[case]
    write_odd(package_folder, kind, target)
    listed = cli("ls")
    assert (listed.code, listed.err) == (0, "")
    assert "odd" in listed.out
    for arguments in [("describe", "odd"), (*RUN, *OPTIONS[kind])]:
        code, _, err = cli(*arguments)
        assert code == 2
        assert err.startswith(f"iclbench: error: {kind} 'odd' of odd-ones (iclbench-odd 2.0)")
        assert reason in err
        assert err.count("\n") == 1


def test_a_task_without_a_version_is_refused(provide):
    class Unversioned(LeastSquares):
        name = "unversioned"
        version = None

    provide("task", "unversioned", Unversioned)
    with pytest.raises(PluginError, match=r"'unversioned' of .* does not set version"):
        host().load("task", "unversioned", Task)


def test_bad_executor_is_an_error_of_its_plugin(package_folder):
    entry = "Entry('odd', 'strange', 'json:JSONEncoder')"
    write_plugin(package_folder, "odd", offer("iclbench_executors", entry))
    with pytest.raises(PluginError, match=r"executor 'odd' of odd \(iclbench-odd 1\.0\).*Executor"):
        PluginHost(only=["odd"]).load("executor", "odd", Executor)


def test_bad_target_prints_no_traceback(package_folder):
    write_odd(package_folder, "model", "targets:Absent")
    done = run_python("-m", "iclbench", "describe", "odd", path=package_folder)
    assert done.returncode == 2
    assert re.fullmatch("iclbench: error: model 'odd' of odd-ones .*\n", done.stderr)


def test_only_chosen_plugins_are_imported(sample_plugin, cli, monkeypatch):
    write_plugin(sample_plugin, "other", offer_model("other"))
    choose_plugins(monkeypatch, "builtins", " other ", " ")
    assert [plugin.name for plugin in host().plugins] == ["builtins", "other"]
    assert host().problems == []
    assert "fine_plugin" not in sys.modules


def test_unknown_chosen_plugin_is_reported_with_the_nearest(sample_plugin, cli, monkeypatch):
    choose_plugins(monkeypatch, "fin", "builtins")
    code, out, err = cli("ls")
    assert code == 0
    assert "quick" in out
    assert err == (
        "iclbench: ICLBENCH_PLUGINS names 'fin', which is not installed; did you mean 'fine'?\n"
    )


@pytest.mark.usefixtures("package_folder")
def test_a_name_that_no_chosen_plugin_provides_is_answered_with_the_choice(cli, monkeypatch):
    choose_plugins(monkeypatch, "builtins")
    outcome = cli(*RUN, "--model", "zero")
    assert outcome.code == 2
    assert "unknown task 'least-squares'; known: none (ICLBENCH_PLUGINS selects" in outcome.err


def test_empty_choice_loads_only_the_harness_s_own(sample_plugin, cli, monkeypatch):
    choose_plugins(monkeypatch, "")
    loaded = json.loads(cli("plugins", "--json").out)
    assert [plugin["name"] for plugin in loaded["plugins"]] == ["builtins"]
    assert loaded["problems"] == []


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
def test_strict_makes_a_problem_an_error(package_folder, cli, monkeypatch, arguments, problem):
    write_plugin(package_folder, "odd", PROBLEMS[problem])
    choose_plugins(monkeypatch, *FIRST_PARTY, "missing" if "missing" in problem else "odd")
    assert cli(*arguments).code == 0
    strict = cli(*arguments, "--strict")
    assert strict.code == 2
    assert re.search(f"^iclbench: error: .*{problem}", strict.err, re.MULTILINE)


@pytest.mark.parametrize("arguments", STRICT, ids=lambda arguments: arguments[0])
def test_strict_accepts_sound_plugins(sample_plugin, cli, monkeypatch, arguments):
    choose_plugins(monkeypatch, *FIRST_PARTY, "fine")
    assert cli(*arguments, "--strict").code == 0


def test_a_class_without_a_name_has_that_of_its_entry(provide):
    class Unnamed(Architecture):
        supports = build = None

    class Derived(Unnamed):
        pass

    provide("model", "unnamed", Unnamed)
    provide("model", "derived", Derived)
    for name in ("unnamed", "derived", "unnamed"):
        assert host().load("model", name, Architecture).name == name


def test_two_entries_are_not_one_class(provide):
    """It has one name, and evaluation prompts are drawn by the name of the task."""

    shared = type("Unnamed", (Architecture,), {"build": None, "supports": None})
    provide("model", "one", shared)
    provide("model", "two", shared, plugin="other-plugin")
    assert host().load("model", "one", Architecture).name == "one"
    with pytest.raises(PluginError, match="models 'one' and 'two' are one class: derive a class"):
        host().load("model", "two", Architecture)
    assert host().load("model", "one", Architecture).name == "one"


def test_the_readme_s_plugin_conforms_and_is_a_mixer_of_other_models(package_folder, cli):
    readme = blocks(ROOT / "README.md", "python")
    (source,) = (text for text in readme if "SequenceArchitecture" in text)
    write_plugin(package_folder, "averages", source)
    checked = cli("check", "iclbench-averages")
    assert (checked.code, "0 failed" in checked.out) == (0, True), checked.out
    tiny = (*RUN, "--recipe", "smoke", "--out", package_folder / "records")
    hybrid = ("--model", "hybrid", "--model-args", 'mixers=["gated-average","transformer"]')
    looped = ("--model", "looped-transformer", "--model-args", "mixer=gated-average")
    for model in (hybrid, looped):
        outcome = cli(*tiny, *model)
        assert outcome.code == 0, outcome.err
