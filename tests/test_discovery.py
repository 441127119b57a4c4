"""Discovery: attribution of entries, and isolation of broken plugins."""

from __future__ import annotations

import importlib
import re

import pytest
from fake_distributions import write_distribution, write_plugin
from fake_plugins import KINDS, RUN, offer, offer_model

from iclbench import UsageError
from iclbench.plugins import PluginHost


@pytest.mark.parametrize("kind", [*KINDS, "command"])
def test_entry_is_attributed_to_its_distribution_and_version(sample_plugin, kind):
    name = "hello" if kind == "command" else f"fine-{kind}"
    plugin, entry = PluginHost(only=["fine"]).provider(kind, name)
    assert (plugin.name, plugin.distribution, plugin.version) == ("fine", "iclbench-fine", "1.2")
    assert entry.name == name


GARBAGE = {
    "no entry": ("'least-squares'", "'least-squares' is not an Entry"),
    "no list": ("*5", "iclbench_architectures raised TypeError"),
    "capitals": ("Entry('Bad Name', 's', 'm:N')", "'Bad Name' is not a name"),
    "no name": ("Entry(None, 's', 'm:N')", "None is not a name"),
    "two lines": ("Entry('odd', 'two\\nlines', 'm:N')", "odd: the summary must be one line"),
    "line end": ("Entry('odd', 'one\\n', 'm:N')", "odd: the summary must be one line"),
    "no summary": ("Entry('odd', '', 'm:N')", "odd: the summary must be one line"),
    "no module": ("Entry('odd', 's', 'Name')", "target 'Name' is not of the form 'module:Name'"),
    "twice": ("Entry('odd', 's', 'm:N'), Entry('odd', 't', 'm:O')", "'odd' appears twice"),
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
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "raises no Exception": ("class Odd(BaseException): pass\nraise Odd('boom')", "Odd: boom"),
    "raises without text": (
        "class Odd(Exception):\n    def __str__(self): return 1 / 0\nraise Odd",
        "Odd",
    ),
    "lacks a module": ("import nowhere_at_all", "ModuleNotFoundError: No module named"),
    "no Python": ("def", "SyntaxError: "),
    "hook raises": (
        RAISES.format("ValueError('boom')"),
        "iclbench_commands raised ValueError: boom",
    ),
    "hook exits": (RAISES.format("SystemExit(3)"), "iclbench_commands raised SystemExit: 3"),
    "hook interrupts": (RAISES.format("KeyboardInterrupt"), "KeyboardInterrupt"),
    "long name": (offer_model("a" * 81), "'aaaaaaaaaaaaaaaaaaaa'…: a name has at most 80"),
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
        "iclbench_run_started takes 'model', but the hook gives spec",
    ),
    "single entry": (
        "@hookimpl\ndef iclbench_tasks(): return Entry('one', 's', 'm:N')",
        "iclbench_tasks returned an Entry; return a list of Entry",
    ),
    **{
        f"returns {word}": (offer("iclbench_architectures", entries), reason)
        for word, (entries, reason) in GARBAGE.items()
    },
}


@pytest.fixture(params=BROKEN)
def broken(request, package_folder):
    """A broken plugin between two sound ones, by name; the value is its reason."""
    source, reason = BROKEN[request.param]
    write_plugin(package_folder, "ahead", offer_model("model-ahead"))
    write_plugin(package_folder, "broken", source, "0.3")
    write_plugin(package_folder, "later", offer_model("model-later"))
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
def several_broken(package_folder):
    """Names of broken plugins, beside all that is installed."""
    named = {"exits": "exits", "misspelled": "misspelled", "raising": "hook raises"}
    for name, case in named.items():
        write_plugin(package_folder, name, BROKEN[case][0])
    return list(named)


@pytest.mark.parametrize(
    "arguments",
    [("ls",), ("describe", "zero"), (*RUN, "--model", "zero")],
    ids=lambda arguments: arguments[0],
)
def test_command_that_needs_no_broken_plugin_reports_all_on_one_line(
    several_broken, cli, arguments, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    outcome = cli(*arguments)
    assert outcome.code == 0
    assert "zero" in outcome.out
    count = len(several_broken)
    line = f"iclbench: {count} problems with plugins; `iclbench plugins` lists them\n"
    assert outcome.err.splitlines(keepends=True)[0] == line
    assert "is left out" not in outcome.err


def test_plugins_lists_broken_ones_with_their_reasons(several_broken, cli):
    lines = cli("plugins").out.splitlines()
    for name in several_broken:
        label = f"{name} (iclbench-{name} 1.0)"
        (row,) = (line.split() for line in lines if line.startswith(f"{name} "))
        assert row[1:4] == ["broken", f"iclbench-{name}", "1.0"]
        assert sum(line.startswith(f"! plugin {label} is left out: ") for line in lines) == 1
    assert any(line.split()[:2] == ["solvers", "ok"] for line in lines if line)


def test_unknown_name_mentions_what_was_left_out(several_broken):
    with pytest.raises(UsageError, match=r"unknown model 'half'.*left out: raising"):
        PluginHost(only=["raising"]).provider("model", "half")


def test_second_entry_point_of_one_name_is_left_out(package_folder):
    for word in ("one", "two"):
        module = {f"{word}_plugin": offer_model(word)}
        write_distribution(package_folder, f"iclbench-{word}", {"twin": f"{word}_plugin"}, **module)
    plugins = PluginHost(only=["twin"])
    (problem,) = plugins.problems
    assert problem == (
        "plugin twin (iclbench-two 1.0) is left out: its name is taken by twin (iclbench-one 1.0)"
    )
    assert [entry.name for _, entry in plugins.entries("model")] == ["one"]


def test_broken_plugin_takes_no_name(package_folder):
    write_distribution(package_folder, "iclbench-one", {"twin": "one_plugin"}, one_plugin="1 / 0")
    write_distribution(
        package_folder, "iclbench-two", {"twin": "two_plugin"}, two_plugin=offer_model("two")
    )
    plugins = PluginHost(only=["twin"])
    assert len(plugins.problems) == 1
    assert plugins.provider("model", "two")[0].distribution == "iclbench-two"


def test_second_name_of_one_module_is_left_out_and_the_first_still_observes(package_folder):
    source = """
        SEEN = []

        @hookimpl
        def iclbench_run_started(spec):
            SEEN.append(spec)
    """
    points = {"name": "named", "other-name": "named"}
    write_distribution(package_folder, "iclbench-named", points, named=source)
    plugins = PluginHost(only=points)
    (problem,) = plugins.problems
    assert problem.endswith("named is already loaded as plugin name")
    plugins.notify("iclbench_run_started", spec="a spec")
    assert importlib.import_module("named").SEEN == ["a spec"]


def test_damaged_installation_is_of_unknown_version(package_folder, cli):
    write_plugin(package_folder, "damaged", offer_model("some"))
    (package_folder / "iclbench_damaged-1.0.dist-info" / "METADATA").unlink()
    (line,) = (line for line in cli("plugins").out.splitlines() if line.startswith("damaged "))
    assert line.split()[1] == "ok"
    assert " unknown unknown " in line


@pytest.mark.parametrize(
    "points", ["[iclbench]\nsound = nowhere\n", "[iclbench]\nno equals sign\n"]
)
def test_metadata_that_is_no_text_stops_no_other_plugin(package_folder, points):
    write_plugin(package_folder, "later", offer_model("model-later"))
    information = package_folder / "damaged-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_bytes(b"Metadata-Version: 2.1\nName: d\xe9\nVersion: 1\n")
    (information / "entry_points.txt").write_text(points)
    plugins = PluginHost()
    assert "model-later" in [entry.name for _, entry in plugins.entries("model")]
    assert any("unknown" in problem for problem in plugins.problems)


def test_entry_points_that_cannot_be_read_stop_no_other(package_folder):
    write_plugin(package_folder, "later", offer_model("model-later"))
    information = package_folder / "damaged-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: damaged\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[iclbench]\nno equals sign\n")
    plugins = PluginHost(only=["later"])
    assert [entry.name for _, entry in plugins.entries("model")] == ["model-later"]
    assert len([p for p in plugins.problems if "entry points of damaged" in p]) == 1


def test_the_first_copy_on_the_path_counts(package_folder, tmp_path, monkeypatch):
    write_plugin(package_folder, "twice", offer_model("old"), version="1.0")
    ahead = tmp_path / "ahead"
    ahead.mkdir()
    monkeypatch.syspath_prepend(str(ahead))
    write_plugin(ahead, "twice", offer_model("new"), version="2.0")
    plugins = PluginHost(only=["twice"])
    assert [(p.name, p.version) for p in plugins.plugins if p.name == "twice"] == [("twice", "2.0")]
    assert plugins.problems == []
