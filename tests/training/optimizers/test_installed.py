"""Optimizers by their paths: those of installed distributions, and nothing else is imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import torch
from fake_distributions import write_plugin
from fake_plugins import RUN, choose_plugins

from iclbench import Recipe, UsageError
from iclbench.training.optimizers.choice import with_whole_optimizer
from iclbench.training.optimizers.installed import class_at

#: A module that leaves a file when it runs.
SOURCE = """
import torch
from pathlib import Path

Path({marker!r}).touch()
number = 1

class X(torch.optim.SGD):
    pass
"""


#: The modules that tests write.
MODULES = {"some_module", "some_package", "shared", "evilmod", "failing"}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """The current folder, which is ahead on the path, and one where distributions are installed."""
    current, site = tmp_path / "current", tmp_path / "site"
    for folder in (current, site):
        folder.mkdir()
    monkeypatch.chdir(current)
    monkeypatch.setattr(sys, "path", [str(current), *sys.path[1:], str(site)])
    yield current, site
    for name in [n for n in sys.modules if n.partition(".")[0] in MODULES]:
        del sys.modules[name]


def write(folder: Path, name: str, source: str = SOURCE) -> Path:
    """Write a module; return the file that it leaves when it runs."""
    marker = folder / f"{name.replace('/', '-')} ran"
    file = folder / f"{name}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(source.format(marker=str(marker)), encoding="utf-8")
    importlib.invalidate_caches()
    return marker


def install(folder: Path, *names: str) -> None:
    """Make a distribution of these modules of a folder."""
    information = folder / "some-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: some\nVersion: 1.0\n")
    (information / "RECORD").write_text("".join(f"{name}.py,,\n" for name in names))
    importlib.invalidate_caches()


def check(path: str, **arguments: float) -> None:
    recipe = Recipe(steps=1, batch=1, optimizer=path, optimizer_args=arguments)
    assert with_whole_optimizer(recipe).optimizer_args == arguments


def test_an_optimizer_of_an_installed_distribution_is_used(folders):
    _, site = folders
    for name in ("some_module", "some_package/__init__", "some_package/part"):
        write(site, name)
    install(site, "some_module", "some_package/__init__", "some_package/part")
    for path in ("some_module.X", "some_package.X", "some_package.part.X"):
        check(path, momentum=0.5)
    check("torch.optim.SGD", momentum=0.5)
    for path, message in {
        "some_module.Missing": "no attribute 'Missing'",
        "some_module.number": "is no torch.optim.Optimizer",
        "some_module.torch": "is no torch.optim.Optimizer",
        "some_package.absent.X": "no module named 'some_package.absent'",
        "some_module.part.X": "__path__ attribute not found",
    }.items():
        with pytest.raises(UsageError, match=message):
            check(path)


@pytest.mark.parametrize("entry", ["first", "empty", "last", "link"])
def test_a_module_of_the_current_folder_is_not_imported(folders, monkeypatch, entry, cli):
    current, site = folders
    link = current.parent / "link"
    link.symlink_to(current)
    path = [str(site), *sys.path[1:]]
    entries = {"empty": "", "link": str(link)}
    index = 0 if entry == "first" else len(path)
    path.insert(index, entries.get(entry, str(current)))
    monkeypatch.setattr(sys, "path", path)
    marker = write(current, "evilmod")
    # Even a distribution that is in the folder too does not count.
    install(current, "evilmod")
    with pytest.raises(UsageError, match="'evilmod' is not of an installed distribution"):
        check("evilmod.X")
    outcome = cli(
        *RUN, "--model", "transformer", "--recipe-args", "optimizer=evilmod.X", "--dry-run"
    )
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert not marker.exists()


def test_a_module_that_shadows_an_installed_one_is_not_imported(folders):
    current, site = folders
    write(site, "some_module")
    install(site, "some_module")
    marker = write(current, "some_module")
    with pytest.raises(UsageError, match="not of an installed distribution"):
        check("some_module.X")
    assert not marker.exists()


@pytest.mark.parametrize(
    "source", ["", "__path__ = __import__('pkgutil').extend_path(__path__, __name__)"]
)
def test_another_part_of_an_installed_package_is_not_imported(folders, source):
    current, site = folders
    names = ["shared/good"]
    write(site, "shared/good")
    if source:
        # A package that collects its parts from the whole path.
        write(site, "shared/__init__", source)
        names.append("shared/__init__")
    install(site, *names)
    marker = write(current, "shared/evil")
    with pytest.raises(UsageError, match="not of an installed distribution"):
        check("shared.evil.X")
    assert not marker.exists()


@pytest.mark.parametrize(
    "path",
    ["os.system", "builtins.eval", "__main__.X", "json.decoder.JSONDecoder", ".X", "X.", "a..X",
     "a/b.X", "a b.X", "some\nmodule.X", "\udc80.X", "a." * 5000 + "X", "ä" * 5000 + ".X"],
    ids=lambda path: ascii(path[:20]),
)  # fmt: skip
def test_a_path_to_something_else_is_refused(folders, path):
    with pytest.raises(UsageError):
        check(path)


def test_an_installed_module_that_fails_is_one_error(folders):
    _, site = folders
    write(site, "failing", "raise SystemExit(0)")
    install(site, "failing")
    with pytest.raises(UsageError, match=r"failing\.X: SystemExit: 0"):
        check("failing.X")


def test_an_optimizer_of_a_loaded_plugin_needs_no_list_of_files(package_folder, monkeypatch):
    write_plugin(package_folder, "optimizing", "import torch\nclass X(torch.optim.SGD): pass")
    write_plugin(package_folder, "failing", "import torch\nclass X(torch.optim.SGD): pass\n1 / 0")
    choose_plugins(monkeypatch, "optimizing", "failing")
    check("optimizing_plugin.X")
    with pytest.raises(UsageError, match="not of an installed distribution"):
        check("failing_plugin.X")
    assert issubclass(sys.modules["optimizing_plugin"].X, torch.optim.Optimizer)


def test_programs_are_no_optimizers():
    with pytest.raises(UsageError, match=r"cogapp\.__main__\.X: its module is private"):
        class_at("cogapp.__main__.X")
