"""Reading the code of this repository: files, imports, functions. For `test_layout.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
HARNESS = ROOT / "iclbench"

#: Packages of the harness, from the bottom to the top. A package imports those below it and itself.
LAYERS = (
    "api", "nn", "training", "runs", "sweeps", "leaderboards", "display", "exchange", "kit", "cli",
)  # fmt: skip
#: Modules between `api` and `nn`. They import `api` and, without a cycle, one another.
SHARED = {"console", "devices", "discovery", "files", "hookspecs", "plugins", "precision"}
#: Modules above every package, which nothing imports.
TOP = {"__init__", "__main__", "builtins"}
RANKS = {
    "api": 0,
    **dict.fromkeys(SHARED, 1),
    **{package: rank for rank, package in enumerate(LAYERS[1:], start=2)},
    **dict.fromkeys(TOP, len(LAYERS) + 1),
}


def python_files(*folders: str) -> list[Path]:
    """The Python files below folders of the repository; all of them without an argument."""
    names = folders or ("iclbench", "plugins", "tasks", "examples", "benchmarks", "tests")
    return [file for name in names for file in sorted((ROOT / name).rglob("*.py"))]


@cache
def tree_of(file: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(file.read_text("utf-8"))


def module_name(file: Path, base: Path = ROOT) -> str:
    """The dotted name of a file below `base`; a package is named `package.__init__`."""
    return ".".join(file.relative_to(base).with_suffix("").parts)


def imports(name: str, tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Every (module, attribute) that a module imports, absolute; None for `import module`.

    Imports in functions and under TYPE_CHECKING count.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".")[: -node.level] if node.level else []
            module = ".".join([*package, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


def graph_of(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """For each module, the ones of `modules` that it imports."""

    def resolve(module: str, attribute: str | None) -> str | None:
        candidates = [f"{module}.{attribute}", f"{module}.{attribute}.__init__"]
        candidates += [module, f"{module}.__init__"]
        return next((candidate for candidate in candidates if candidate in modules), None)

    return {
        name: {target for pair in imports(name, tree) if (target := resolve(*pair))}
        for name, tree in modules.items()
    }


def harness() -> dict[str, set[str]]:
    """The import graph of the harness; names are relative to it."""
    graph = graph_of({module_name(file): tree_of(file) for file in python_files("iclbench")})
    short = {name: name.removeprefix("iclbench.") for name in graph}
    return {short[name]: {short[target] for target in targets} for name, targets in graph.items()}


def upward(graph: dict[str, set[str]]) -> Iterator[str]:
    """The imports against the direction of the layers."""
    for module, targets in graph.items():
        for target in targets:
            importer, imported = module.split(".")[0], target.split(".")[0]
            within = importer == imported or {importer, imported} <= SHARED
            if not within and RANKS[imported] >= RANKS[importer]:
                yield f"{module} -> {target}"


def in_cycles(graph: dict[str, set[str]]) -> set[str]:
    """The modules that import themselves through others."""

    def reachable(start: str) -> set[str]:
        reached: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            module = waiting.pop()
            if module not in reached:
                reached.add(module)
                waiting += graph[module]
        return reached

    return {module for module in graph if module in reachable(module)}


def relative(file: Path) -> str:
    """A file's path in the repository."""
    return file.relative_to(ROOT).as_posix()


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function of the repository with its label."""
    for file in python_files():
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{relative(file)}: {node.name}", node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The names of a function's parameters, without `self` and `cls`."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    variadic = [one for one in (arguments.vararg, arguments.kwarg) if one]
    return [one.arg for one in [*named, *variadic] if one.arg not in {"self", "cls"}]
