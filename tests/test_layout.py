"""The layout of the code: the direction of imports, what plugins import, and sizes."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter

import pytest
from layout import (
    HARNESS,
    LAYERS,
    RANKS,
    ROOT,
    SHARED,
    functions,
    graph_of,
    harness,
    imports,
    in_cycles,
    module_name,
    parameters,
    python_files,
    relative,
    tree_of,
    upward,
)

import iclbench

MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION, MOST_PARAMETERS = 300, 60, 8
MOST_MODULES_BESIDE_PACKAGES = 10


# The harness


def test_every_package_and_module_has_a_layer():
    names = {module.split(".")[0] for module in harness()}
    assert names <= set(RANKS)
    assert set(LAYERS) <= names


def test_imports_point_downward():
    assert sorted(upward(harness())) == []


def test_no_module_imports_itself_through_others():
    assert sorted(in_cycles(harness())) == []


def test_the_harness_imports_no_plugin_and_no_task():
    for file in python_files("iclbench"):
        for module, _ in imports(module_name(file), tree_of(file)):
            assert not module.startswith("iclbench_"), f"{relative(file)}: {module}"


def test_there_are_few_modules_beside_the_packages():
    assert len(list(HARNESS.glob("*.py"))) <= MOST_MODULES_BESIDE_PACKAGES


def says_what_it_may_import(package: str) -> bool:
    """Whether the docstring says what belongs in a package and names only lower packages."""
    text = ast.get_docstring(tree_of(HARNESS / package / "__init__.py")) or ""
    purpose, says, allowed = text.partition("may import ")
    lower = set(LAYERS[: LAYERS.index(package)]) | SHARED
    named = set(re.findall(r"`(\w+)`", allowed.partition(".")[0].partition(" never ")[0]))
    return len(purpose.split()) > 10 and bool(says) and named <= lower


def test_packages_say_what_belongs_there_and_what_they_may_import():
    silent = {package for package in LAYERS if not says_what_it_may_import(package)}
    assert sorted(silent) == []


# Plugins, tasks and examples


def test_plugins_import_from_iclbench_itself():
    offenders = {
        f"{relative(file)}: {'.'.join(filter(None, (module, name)))}"
        for file in python_files("plugins", "tasks", "examples")
        for module, name in imports(module_name(file), tree_of(file))
        if module.startswith("iclbench.") or (module == "iclbench" and name not in iclbench.__all__)
    }
    assert sorted(offenders) == []


def test_plugins_and_tasks_import_no_other_plugin():
    for file in python_files("plugins", "tasks"):
        package = file.relative_to(ROOT).parts[1]
        for module, _ in imports(module_name(file), tree_of(file)):
            name = module.split(".")[0]
            assert name == package or not name.startswith("iclbench_"), f"{relative(file)}: {name}"


# Sizes


def test_files_are_short():
    long = {
        relative(file)
        for file in python_files()
        if len(file.read_text("utf-8").splitlines()) > MOST_LINES_OF_A_FILE
    }
    assert sorted(long) == []


def test_functions_are_short():
    long = {
        label
        for label, node in functions()
        if (node.end_lineno or 0) - node.lineno + 1 > MOST_LINES_OF_A_FUNCTION
    }
    assert sorted(long) == []


def test_functions_have_few_parameters():
    # In a verb of the command line every option is a parameter, and so it is in Python.
    in_python = [f"iclbench/display/{verb}.py: {verb}" for verb in ("run", "tune", "campaign")]
    verbs = ("iclbench/cli/", *in_python)
    many = {
        label
        for label, node in functions()
        if not label.startswith(verbs)
        and "/command.py:" not in label
        and len(parameters(node)) > MOST_PARAMETERS
    }
    assert sorted(many) == []


# Tests


def modules_of(folder: str) -> set[str]:
    """What the tests in a folder may be named after."""
    files = python_files(f"iclbench/{folder}" if folder in LAYERS else folder)
    names = {file.parent.name if file.stem == "__init__" else file.stem for file in files}
    return {name.removeprefix("iclbench_") for name in names}


def test_tests_are_named_after_what_they_test():
    offenders = set()
    for folder in (*LAYERS, "plugins", "tasks"):
        names = modules_of(folder)
        for file in sorted((ROOT / "tests" / folder).rglob("test_*.py")):
            words = file.stem.removeprefix("test_").split("_")
            prefixes = {"_".join(words[:count]) for count in range(1, len(words) + 1)}
            if not prefixes & names:
                offenders.add(relative(file))
    assert sorted(offenders) == []


def test_no_two_tests_share_a_name():
    # pytest imports test modules by their names alone, and stops at the second of one name.
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


# The checks themselves

SOURCE = """
import os
from typing import TYPE_CHECKING
from . import sibling
from ..top import name

if TYPE_CHECKING:
    from .typed import Type

def function():
    import iclbench.late
    from .sibling import other
"""


def test_imports_in_functions_and_for_types_are_seen():
    names = {"iclbench", "iclbench.top", "iclbench.late", "iclbench.a.__init__"}
    names |= {f"iclbench.a.{name}" for name in ("sibling", "typed")}
    modules = {name: ast.parse("") for name in names} | {"iclbench.a.here": ast.parse(SOURCE)}
    assert graph_of(modules)["iclbench.a.here"] == {
        "iclbench.a.sibling",
        "iclbench.a.typed",
        "iclbench.late",
        "iclbench.top",
    }


@pytest.mark.parametrize(
    ("module", "target", "allowed"),
    [
        ("runs.run", "training.loop", True),
        ("runs.run", "runs.plan", True),
        ("nn.model", "files", True),
        ("plugins", "console", True),
        ("cli.__init__", "runs.run", True),
        ("training.loop", "runs.plan", False),
        ("files", "nn.model", False),
        ("api.task", "files", False),
        ("cli.run", "__init__", False),
        ("plugins", "builtins", False),
    ],
)
def test_an_upward_import_is_noticed(module, target, allowed):
    offenders = list(upward({module: {target}}))
    assert offenders == ([] if allowed else [f"{module} -> {target}"])


def test_a_cycle_is_noticed():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert in_cycles(graph) == {"b", "c"}


def test_a_checkout_without_the_objects_of_records_is_small():
    """docs/install.md says how to get one; `submit` bounds the weights of a record."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed.stdout.split("\0") if name and "/objects/" not in name]
    assert sum(file.stat().st_size for file in files if file.is_file()) < 60e6
