"""Optimizers of installed packages by their paths. No other code is imported.

A path may come from a stranger's record or sweep file, and importing a module runs it. So a module
is imported only if a distribution that is installed outside the current folder lists its file.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ...api.errors import UsageError
from ...plugins import host


def class_at(path: str) -> Any:
    """Return the optimizer at a path, `package.Class`; raises UsageError."""
    *modules, name = path.split(".")
    if not modules or not all(part.isidentifier() for part in (*modules, name)):
        raise UsageError(f"optimizer {path!r} is not a path like package.Class")
    if any(part.startswith("_") for part in modules):
        # Importing __main__ runs a program.
        raise UsageError(f"optimizer {path}: its module is private")
    try:
        # Importing a module imports those above it, so these are looked at first.
        for end in range(1, len(modules) + 1):
            module = _import_installed(".".join(modules[:end]))
        cls = getattr(module, name)
    except UsageError as error:
        raise UsageError(f"optimizer {path}: {error}") from None
    except (Exception, SystemExit) as error:  # a package may raise anything
        raise UsageError(f"optimizer {path}: {type(error).__name__}: {error}") from None
    if not (inspect.isclass(cls) and issubclass(cls, torch.optim.Optimizer)):
        raise UsageError(f"optimizer {path} is no torch.optim.Optimizer")
    return cls


@cache
def distributions_of(path: str) -> tuple[str, ...]:
    """Return the distributions that hold the optimizer at a path; none for a name without dots."""
    package, dot, _ = path.partition(".")
    return tuple(sorted(set(metadata.packages_distributions().get(package, ())))) if dot else ()


def _import_installed(name: str) -> ModuleType:
    """Import a module whose parents have been imported; raises UsageError, and ImportError."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module that was not imported from a file, such as __main__
        spec = None
    else:
        if spec is None:
            raise UsageError(f"no module named {name!r}")
    if spec is None or not _is_installed(spec):
        raise UsageError(f"the module {name!r} is not of an installed distribution")
    return importlib.import_module(name)


def _is_installed(spec: ModuleSpec) -> bool:
    """Whether a distribution lists the module's file, or a plugin that is loaded holds it."""
    if spec.origin is None or not spec.has_location:
        # A namespace package may have parts anywhere.
        return False
    file = Path(spec.origin)
    return _is_in_plugin(spec.name, file) or any(
        _is_listed(folder, file) for folder in _trusted_folders() if file.is_relative_to(folder)
    )


def _is_listed(folder: Path, file: Path) -> bool:
    """Whether a distribution in `folder` lists the file in its RECORD."""
    line = f"\n{file.relative_to(folder).as_posix()},"
    distributions = metadata.distributions(path=[str(folder)])
    return any(line in f"\n{item.read_text('RECORD') or ''}" for item in distributions)


def _trusted_folders() -> Iterator[Path]:
    """The folders of the path, except the script's and the current one."""
    current = Path.cwd()
    entries = sys.path if sys.flags.safe_path else sys.path[1:]
    for entry in entries:
        if entry and Path(entry).resolve() != current:
            yield Path(entry)


def _is_in_plugin(name: str, file: Path) -> bool:
    """Whether a loaded plugin holds the file; an editable installation lists no files."""
    top = name.partition(".")[0]
    plugins = {plugin.module.partition(":")[0] for plugin in host().plugins if not plugin.problem}
    home = getattr(sys.modules.get(top), "__file__", None)
    return (
        home is not None
        and top in {module.partition(".")[0] for module in plugins}
        and file.is_relative_to(Path(home).parent)
    )
