"""The package declares what it imports: a missing name breaks all installations but ours."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
#: Extras that people don't install to use the harness.
FOR_DEVELOPERS = {"dev", "docs"}


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _names(requirements: list[str]) -> set[str]:
    return {_normalized(re.split(r"[\[<>=~! ]", requirement)[0]) for requirement in requirements}


REQUIRED = _names(PROJECT["dependencies"])
OPTIONAL = set().union(
    *(
        _names(requirements)
        for extra, requirements in PROJECT["optional-dependencies"].items()
        if extra not in FOR_DEVELOPERS
    )
)
MODULES = sorted(
    path
    for folder in ("iclbench", "plugins", "tasks")
    for path in (ROOT / folder).rglob("*.py")
    if "tests" not in path.relative_to(ROOT).parts
)
OURS = {"iclbench", *(path.name for f in ("plugins", "tasks") for path in (ROOT / f).iterdir())}
#: A package that the environment may lack has the name of its distribution, if it isn't listed.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "fla": "flash-linear-attention"}
INSTALLED = packages_distributions()
#: What comes with a declared package, or can't be missing where it is imported.
COMES_ALONG = {
    "markupsafe": "jinja2",
    "httpx2": "openai",
    "IPython": "a notebook, which is running then",
    "pytest": "pytest itself, which loads the plugin",
    "rdata": "an error message that says how to install it",
}


def _imports(tree: ast.AST, *, late: bool) -> set[tuple[str, bool]]:
    """The packages that a module imports, and whether only a function or a type needs them."""
    found: set[tuple[str, bool]] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {(name.name.partition(".")[0], late) for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add((node.module.partition(".")[0], late))
        else:
            is_guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            found |= _imports(node, late=late or is_guarded or is_function)
    return found


def _undeclared(source: str, *, is_plugin: bool = False) -> list[str]:
    """Imports that no installation is sure to satisfy.

    A module of a plugin is loaded when its model or executor is used, so an extra is enough for it.
    """
    missing = set()
    for package, late in _imports(ast.parse(source), late=is_plugin):
        if package in {*sys.stdlib_module_names, *OURS, *COMES_ALONG}:
            continue
        known = INSTALLED.get(package, [DISTRIBUTIONS.get(package, package)])
        if not {_normalized(name) for name in known} & (REQUIRED | (OPTIONAL if late else set())):
            missing.add(package)
    return sorted(missing)


@pytest.mark.parametrize("folder", ["iclbench", "plugins", "tasks"])
def test_every_import_is_declared(folder):
    modules = [path for path in MODULES if path.is_relative_to(ROOT / folder)]
    assert modules
    found = {p: _undeclared(p.read_text("utf-8"), is_plugin=folder != "iclbench") for p in modules}
    assert {str(p.relative_to(ROOT)): names for p, names in found.items() if names} == {}


def test_a_package_for_developers_is_not_enough():
    assert _undeclared("import hypothesis\nfrom numpy import array") == ["hypothesis"]
    # An extra is enough for what only a function imports.
    assert _undeclared("import ray") == ["ray"]
    assert _undeclared("def start():\n    import ray") == []
