"""The whole kit on plugins with an entry of every kind."""

from __future__ import annotations

import pytest
from fake_distributions import write_plugin

from iclbench import UsageError, check_plugin, hookimpl, host
from iclbench.kit import cases
from iclbench.kit.whole import checks_of_plugin
from iclbench.plugins import PluginHost

#: A module with models that break a promise, and an observer that raises.
BROKEN = """
    from iclbench import Solver
    from pydantic import Field
    from iclbench_solvers.simple import Zero
    from torch import nn

    class Peeks(Zero):
        name = "peeks"

        def supports(self, signature, config):
            return None if signature.target == "query" else "it needs a query"

        def build(self, signature, config):
            class Module(nn.Module):
                def forward(self, prompt):
                    return prompt.y[:, :1] * len(prompt.y)
            return Module()

    @hookimpl
    def iclbench_architectures():
        return [
            Entry("peeks", "answers depend on the batch", Peeks),
            Entry("absent", "not there", "no_such_module:Model"),
        ]

    @hookimpl
    def iclbench_run_started(spec):
        raise ValueError("not today")
"""


@pytest.fixture
def outcomes(package_folder):
    """Installs a plugin; returns what the kit says of it: label → (status, text)."""

    def check(name, source):
        write_plugin(package_folder, name, source)
        return {o.case.label: (o.status, o.text) for o in check_plugin(f"iclbench-{name}")}

    return check


def test_a_sound_plugin_with_every_kind_conforms(sample_plugin, monkeypatch):
    # Its executor is the local one, whose check takes seconds and has tests of its own.
    monkeypatch.setattr("iclbench.kit.services.check_executor", lambda executor, folder: None)
    results = check_plugin("iclbench-fine")
    assert [(o.case.label, o.text) for o in results if o.status != "ok"] == []
    kinds = {outcome.case.kind for outcome in results}
    assert kinds == {"plugin", "model", "task", "recipe", "suite", "metric", "grader", "executor",
                     "tracker", "command"}  # fmt: skip
    assert all(outcome.seconds >= 0 and outcome.text for outcome in results)


def test_what_is_broken_is_named_and_the_rest_is_checked(outcomes):
    found = outcomes("broken", BROKEN)
    assert found["plugin broken: loads"][0] == "ok"
    assert "imports torch" in found["plugin broken: loads"][1]
    status, text = found["plugin broken: observes"]
    assert (status, "not today" in text) == ("failed", True)
    status, text = found["model peeks: module"]
    assert (status, "other prompts of its batch" in text) == ("failed", True)
    assert found["model absent: loads"][0] == "failed"
    assert found["model peeks: arguments"][0] == "ok"


def test_an_observer_is_not_checked_without_a_model_that_can_be_trained(outcomes, monkeypatch):
    monkeypatch.setenv("ICLBENCH_PLUGINS", "alone")
    source = """
    @hookimpl
    def iclbench_run_started(spec):
        pass
    """
    status, text = outcomes("alone", source)["plugin alone: observes"]
    assert (status, text) == ("not checked", "no installed model can be trained")


def test_the_run_hooks_of_an_object_are_checked_too(monkeypatch):
    class Observer:
        @hookimpl
        def iclbench_run_started(self, spec):
            pass

    plugins = PluginHost(only=[])
    plugins.add(Observer(), "mine")
    monkeypatch.setattr("iclbench.kit.whole.host", lambda: plugins)
    assert [label for label, _ in checks_of_plugin(plugins.plugins[-1])] == ["loads", "observes"]


def test_a_plugin_that_cannot_be_loaded_has_one_case(outcomes):
    found = outcomes("bad", "raise RuntimeError('too early')")
    assert found == {"plugin bad: loads": ("failed", "RuntimeError: too early")}


def test_a_name_that_two_plugins_provide_is_a_problem(outcomes):
    source = """
    @hookimpl
    def iclbench_architectures():
        return [Entry("zero", "again", "iclbench_solvers.simple:Zero")]
    """
    status, text = outcomes("twice", source)["plugin twice: loads"]
    assert status == "failed"
    assert "is provided by" in text


@pytest.mark.parametrize("name", ["iclbench-fine", "fine", "fine_plugin", "Iclbench_Fine"])
def test_a_package_is_found_by_each_of_its_names(sample_plugin, name):
    assert [plugin.name for plugin in cases.plugins_of(name)] == ["fine"]


def test_an_unknown_package_is_answered_with_the_nearest(sample_plugin):
    with pytest.raises(UsageError, match="did you mean 'iclbench-fine'"):
        check_plugin("iclbench-fin")


def test_a_plugin_without_entries_loads(outcomes):
    nothing = "it provides nothing: a hook must return a list of entries"
    assert outcomes("empty", "VALUE = 1") == {"plugin empty: loads": ("ok", nothing)}
    assert host().problems == []


def test_a_plugin_that_exits_fails_its_own_check(outcomes):
    """Its exit status of 0 must not become that of the whole check."""
    source = """
    from iclbench_solvers.simple import Zero

    class Leaves(Zero):
        name = "leaves"

        def build(self, signature, config):
            raise SystemExit(0)

    @hookimpl
    def iclbench_architectures():
        return [Entry("leaves", "exits", Leaves)]
    """
    status, text = outcomes("leaver", source)["model leaves: module"]
    assert (status, "SystemExit" in text) == ("failed", True)


def test_what_another_distribution_breaks_does_not_fail_a_check(outcomes, package_folder):
    """Its task has the form of least squares, and is the shortest of it."""
    write_plugin(
        package_folder,
        "broken",
        """
    from iclbench_least_squares.fixed import FixedConfig, LeastSquares
    from pydantic import Field

    class Short(FixedConfig):
        dim: int = Field(1, description="features")
        examples: int = Field(1, description="of a prompt")

    class Broken(LeastSquares):
        name = "broken"
        Config = Short

        def arrange(self, draws):
            raise ValueError("broken elsewhere")

    @hookimpl
    def iclbench_tasks():
        return [Entry("broken", "raises", Broken)]
    """,
    )
    found = outcomes(
        "sound",
        """
    from iclbench_solvers.simple import Zero

    class Nought(Zero):
        name = "nought"

    @hookimpl
    def iclbench_architectures():
        return [Entry("nought", "zeros", Nought)]
    """,
    )
    assert "broken" in {entry.name for _, entry in host().entries("task")}
    assert {status for status, _ in found.values()} == {"ok"}, found


def test_a_construction_fails_unless_every_task_refuses_it(outcomes):
    source = """
    from iclbench import Architecture, Config, Construction, UsageError
    from torch import nn

    class Wrong(Construction):
        def __init__(self, error):
            self.error = error

        def build(self, signature, args, task):
            raise self.error

    class Built(Architecture):
        name = "built"
        constructions = {
            "broken": Wrong(RuntimeError("no weights")),
            "refusing": Wrong(UsageError("it needs another task")),
        }

        def supports(self, signature, config):
            return None if signature.target == "query" else "it needs a query"

        def build(self, signature, config):
            return nn.Linear(1, 1)

    @hookimpl
    def iclbench_architectures():
        return [Entry("built", "has constructions", Built)]
    """
    found = outcomes("builder", source)
    assert found["model built: weights broken"][0] == "failed"
    assert "no weights" in found["model built: weights broken"][1]
    status, text = found["model built: weights refusing"]
    assert (status, "it needs another task" in text) == ("not checked", True)


#: Trackers that raise when a run starts or ends, one that lacks a package, and a sound one; and an
#: executor with an argument that says nothing of itself.
TRACKERS = """
    from iclbench import Config, Executor, Tracker, UsageError
    from pydantic import Field

    class Silent(Tracker):
        name = "silent"

        def start(self, spec, settings):
            pass

        def log(self, step, values):
            pass

        def finish(self, record, summary):
            pass

    class NeverStarts(Silent):
        name = "never-starts"

        def start(self, spec, settings):
            raise ValueError("no start")

    class NeverEnds(Silent):
        name = "never-ends"

        def finish(self, record, summary):
            raise ValueError("no end")

    class Lacking(Silent):
        name = "lacking"

        @classmethod
        def prepare(cls, config):
            raise UsageError("it needs a package")

    class Unsaid(Config):
        queue: str = "short"

    class Somewhere(Executor):
        name = "somewhere"
        Config = Unsaid

        def map(self, function, jobs, workers):
            yield from ()

    @hookimpl
    def iclbench_trackers():
        return [Entry(one.name, "follows", one)
                for one in (Silent, NeverStarts, NeverEnds, Lacking)]

    @hookimpl
    def iclbench_executors():
        return [Entry("somewhere", "runs nothing", Somewhere)]
"""


def test_a_tracker_must_follow_a_run_to_its_end(outcomes):
    found = outcomes("following", TRACKERS)
    assert found["tracker silent: arguments"][0] == "ok"
    assert found["tracker silent: run"][0] == "ok"
    for name, reason in (("never-starts", "no start"), ("never-ends", "no end")):
        status, text = found[f"tracker {name}: run"]
        assert (status, reason in text) == ("failed", True)
    status, text = found["tracker lacking: run"]
    assert (status, text) == ("not checked", "it can't be prepared here: it needs a package")
    status, text = found["executor somewhere: arguments"]
    assert (status, "arguments without a description: queue" in text) == ("failed", True)
