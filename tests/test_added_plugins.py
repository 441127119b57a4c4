"""Objects of a process as plugins, such as a model that is written in a notebook."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from iclbench import Entry, PluginError, UsageError, hookimpl
from iclbench.discovery import module_digest
from iclbench.plugins import PluginHost


class Local:
    """A plugin written in this process."""

    def __init__(self, name="local-zero"):
        self.name = name

    @hookimpl
    def iclbench_architectures(self):
        return [Entry(self.name, "for a test", "iclbench_solvers.simple:Zero")]


def test_an_object_is_a_plugin_of_this_process_and_can_be_replaced():
    plugins = PluginHost(only=["solvers"])
    plugins.add(Local(), "mine")
    plugins.add(Local("other-zero"), "mine")
    assert plugins.provider("model", "other-zero")[0].label == "mine (this-process 0)"
    with pytest.raises(UsageError, match="unknown model 'local-zero'"):
        plugins.provider("model", "local-zero")
    with pytest.raises(PluginError, match="'solvers' is already there"):
        plugins.add(Local(), "solvers")


def test_code_without_a_file_is_other_code_each_time_that_it_is_added(monkeypatch):
    plugins = PluginHost(only=["solvers"])
    monkeypatch.setattr(Local, "__module__", "a_notebook")
    monkeypatch.setitem(sys.modules, "a_notebook", ModuleType("a_notebook"))
    digests = []
    for _ in range(2):
        plugins.add(Local(), "mine")
        plugin = next(p for p in plugins.plugins if p.name == "mine")
        digests.append(plugin.source_digest())
        assert plugin.source_digest() == digests[-1]
    assert digests[0] != digests[1]


def test_a_module_that_is_added_has_the_digest_of_its_file():
    plugins = PluginHost(only=[])
    plugins.add(sys.modules["iclbench_solvers"], "mine")
    plugin = next(p for p in plugins.plugins if p.name == "mine")
    assert plugin.source_digest() == module_digest("iclbench_solvers")


def test_code_that_is_edited_and_added_again_is_other_code(tmp_path, monkeypatch):
    """A notebook has the plugin, and a module beside it the model."""
    model = tmp_path / "model_of_a_notebook.py"
    model.write_text("from iclbench_solvers import simple\nclass Zero(simple.Zero): pass\n")
    monkeypatch.syspath_prepend(tmp_path)

    class Notebook:
        @hookimpl
        def iclbench_architectures(self):
            return [Entry("mine", "for a test", "model_of_a_notebook:Zero")]

    plugins, digests = PluginHost(only=[]), []
    for is_reloaded in (False, False, True):
        plugins.add(Notebook(), "mine")
        model.write_text(model.read_text() + "# edited\n")
        if is_reloaded:
            importlib.reload(sys.modules[model.stem])
            plugins.add(Notebook(), "mine")
        digests.append(next(p for p in plugins.plugins if p.name == "mine").source_digest())
        model_class = sys.modules[model.stem].Zero
        assert plugins.target("model", "mine")[1] is model_class
    # What is edited does not run before it is reloaded.
    assert digests[0] == digests[1] != digests[2]


def test_an_object_without_hooks_is_refused():
    plugins = PluginHost(only=[])
    with pytest.raises(PluginError, match="plugin 'mine' has no hooks, such as iclbench_arch"):
        plugins.add(object(), "mine")
    assert all(plugin.name != "mine" for plugin in plugins.plugins)


def test_an_object_with_an_invalid_hook_is_refused():
    plugins = PluginHost(only=[])
    with pytest.raises(PluginError, match="is not a name"):
        plugins.add(Local("Not A Name"), "mine")
    assert all(plugin.name != "mine" for plugin in plugins.plugins)


def test_an_invalid_object_leaves_the_one_that_it_should_replace():
    plugins = PluginHost(only=["solvers"])
    plugins.add(Local(), "mine")
    with pytest.raises(PluginError, match="is not a name"):
        plugins.add(Local("Not A Name"), "mine")
    assert plugins.provider("model", "local-zero")[0].name == "mine"
    plugins.add(Local("other-zero"), "mine")
    assert plugins.provider("model", "other-zero")[0].name == "mine"


def test_a_name_that_another_plugin_has_is_refused_when_it_is_added():
    class Mine:
        @hookimpl
        def iclbench_architectures(self):
            return [Entry("transformer", "for a test", "iclbench_solvers.simple:Zero")]

    plugins = PluginHost()
    with pytest.raises(
        PluginError, match=r"model 'transformer' is provided by transformer .* already"
    ):
        plugins.add(Mine(), "mine")
    assert plugins.provider("model", "transformer")[0].name == "transformer"
    assert not plugins.problems
