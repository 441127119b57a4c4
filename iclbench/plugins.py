"""The plugin manager: discovery, isolation of broken plugins, and who provides what.

Each entry point of the group `iclbench` is loaded on its own. A plugin that fails to import, to
validate or to answer a catalog hook stays out whole, with its reason, and stops nobody else.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import os
import pkgutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pluggy

from . import hookspecs
from .api.entry import Entry
from .api.errors import PluginError, UsageError, unknown
from .console import report

GROUP = "iclbench"

#: What the harness itself provides, which no choice of plugins leaves out.
BUILTINS = "iclbench.builtins"

#: Catalog hooks, by the word that names one of their entries in messages.
KINDS = {
    "model": "iclbench_architectures",
    "task": "iclbench_tasks",
    "recipe": "iclbench_recipes",
    "metric": "iclbench_metrics",
    "grader": "iclbench_graders",
    "executor": "iclbench_executors",
    "command": "iclbench_commands",
}


@dataclass(frozen=True)
class Plugin:
    """A discovered entry point: what it provides, or why it was left out."""

    name: str
    distribution: str
    version: str
    module: str
    import_seconds: float
    problem: str | None = None
    entries: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)

    def source_digest(self) -> str:
        """SHA-256 of the plugin's Python files, so that a change of code can be told."""
        module = sys.modules[self.module.split(":")[0]]
        files = [Path(str(module.__file__))] if getattr(module, "__file__", None) else []
        if hasattr(module, "__path__"):
            files = sorted(file for part in module.__path__ for file in Path(part).rglob("*.py"))
        digest = hashlib.sha256()
        for file in files:
            digest.update(file.name.encode() + file.read_bytes())
        return digest.hexdigest()

    @property
    def label(self) -> str:
        """The plugin as messages name it."""
        return f"{self.name} ({self.distribution} {self.version})"


class PluginHost:
    """All plugins of one process, each isolated from the others."""

    def __init__(self, only: Iterable[str] | None = None) -> None:
        """Discover plugins; `only` restricts them to these entry-point names."""
        self._manager = pluggy.PluginManager("iclbench")
        self._manager.add_hookspecs(hookspecs)
        self.plugins: list[Plugin] = []
        self.problems: list[str] = []
        wanted = None if only is None else list(only)
        found = self._entry_points()
        for point in found:
            if wanted is None or point.name in wanted or point.value == BUILTINS:
                self._add(point)
        for name in wanted or []:
            if name not in {point.name for point in found}:
                near = difflib.get_close_matches(name, [point.name for point in found], n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                self.problems.append(f"ICLBENCH_PLUGINS names {name!r}, which is not here{hint}")
        self._find_collisions()

    def _entry_points(self) -> list[metadata.EntryPoint]:
        """The group's entry points by name, of each distribution the copy first on the path."""
        found: dict[str, list[metadata.EntryPoint]] = {}
        for distribution in metadata.distributions():
            try:
                points = [p for p in distribution.entry_points if p.group == GROUP]
            except Exception as error:
                self.problems.append(
                    f"the entry points of {distribution.name} can't be read: {_reason(error)}"
                )
                continue
            if points:
                found.setdefault(_origin(points[0])[0], points)
        every = [point for points in found.values() for point in points]
        return sorted(every, key=lambda point: (point.name, point.value))

    def _add(self, point: metadata.EntryPoint) -> None:
        started = time.perf_counter()
        module: Any = None
        problem: str | None = None
        entries: dict[str, tuple[Entry, ...]] = {}
        try:
            other = next((p for p in self.plugins if p.name == point.name and not p.problem), None)
            if other is not None:
                raise PluginError(f"its name is taken by {other.label}")
            module = point.load()
            imported = time.perf_counter() - started
            if self._manager.is_registered(module):
                same = self._manager.get_name(module)
                raise PluginError(f"{point.value} is plugin {same} already")
            self._manager.register(module, name=point.name)
            self._check_hooks(module)
            entries = {kind: self._ask(module, hook) for kind, hook in KINDS.items()}
        except (Exception, SystemExit) as error:
            imported = time.perf_counter() - started
            problem = _reason(error)
            if module is not None and self._manager.get_plugin(point.name) is module:
                self._manager.unregister(module)
        distribution, version = _origin(point)
        plugin = Plugin(
            name=point.name,
            distribution=distribution,
            version=version,
            module=point.value,
            import_seconds=imported,
            problem=problem,
            entries=entries,
        )
        self.plugins.append(plugin)
        if problem:
            self.problems.append(f"plugin {plugin.label} is left out: {problem}")

    def _check_hooks(self, module: Any) -> None:
        """Refuse hooks that don't exist or aren't marked, which pluggy alone would ignore."""
        known = [name for name in vars(hookspecs) if name.startswith("iclbench_")]
        for name in known:
            function = getattr(module, name, None)
            if callable(function) and not self._manager.parse_hookimpl_opts(module, name):
                raise PluginError(f"{name} is not marked with @hookimpl")
        for caller in self._manager.get_hookcallers(module) or []:
            optional = all(i.optionalhook for i in caller.get_hookimpls() if i.plugin is module)
            if not caller.has_spec() and not optional:
                raise PluginError(str(unknown("hook", caller.name, known)))

    def _ask(self, module: Any, hook: str) -> tuple[Entry, ...]:
        """One plugin's answer to one catalog hook, checked."""
        others = [m for m in self._manager.get_plugins() if m is not module]
        try:
            answers = self._manager.subset_hook_caller(hook, remove_plugins=others)()
            entries = tuple(entry for answer in answers for entry in answer)
        except (Exception, SystemExit) as error:
            raise PluginError(f"{hook} raised {_reason(error)}") from error
        for entry in entries:
            problem = entry.problem() if isinstance(entry, Entry) else f"{entry!r} is no Entry"
            if problem:
                raise PluginError(f"{hook}: {problem}")
        names = [entry.name for entry in entries]
        for name in names:
            if names.count(name) > 1:
                raise PluginError(f"{hook}: {name!r} is given twice")
        return entries

    def _find_collisions(self) -> None:
        for kind in KINDS:
            for name, providers in self._by_name(kind).items():
                if len(providers) > 1:
                    self.problems.append(_collision(kind, name, providers))

    def _by_name(self, kind: str) -> dict[str, list[Plugin]]:
        table: dict[str, list[Plugin]] = {}
        for plugin, entry in self.entries(kind):
            table.setdefault(entry.name, []).append(plugin)
        return table

    def entries(self, kind: str) -> Iterator[tuple[Plugin, Entry]]:
        """Every entry of a kind with its plugin, by name."""
        found = [(p, e) for p in self.plugins for e in p.entries.get(kind, ())]
        return iter(sorted(found, key=lambda pair: (pair[1].name, pair[0].name)))

    def provider(self, kind: str, name: str) -> tuple[Plugin, Entry]:
        """Who provides `name`; raises UsageError if nobody does, PluginError if two do."""
        table = self._by_name(kind)
        if name not in table:
            error = unknown(kind, name, table)
            broken = [plugin.name for plugin in self.plugins if plugin.problem]
            if broken:
                raise UsageError(f"{error} (left out: {', '.join(broken)})")
            raise error
        if len(table[name]) > 1:
            raise PluginError(_collision(kind, name, table[name]))
        plugin = table[name][0]
        return plugin, next(e for e in plugin.entries[kind] if e.name == name)

    def target(self, kind: str, name: str) -> tuple[Plugin, Any]:
        """Who provides `name`, and the object itself, imported now.

        Raises PluginError when it can't be imported.
        """
        plugin, entry = self.provider(kind, name)
        target = entry.target
        try:
            return plugin, pkgutil.resolve_name(target) if isinstance(target, str) else target
        except (Exception, SystemExit) as error:
            reason = _reason(error)
            raise PluginError(f"{kind} {name!r} of {plugin.label} fails: {reason}") from error

    def load(self, kind: str, name: str, base: type) -> Any:
        """The complete class derived from `base` that provides `name`; for a recipe, the `base`.

        Raises PluginError when it can't be imported or is something else.
        """
        plugin, found = self.target(kind, name)
        who = f"{kind} {name!r} of {plugin.label}"
        if kind == "recipe":
            if not isinstance(found, base):
                raise PluginError(f"{who}: {found!r} is no iclbench.{base.__name__}")
        elif not isinstance(found, type) or not issubclass(found, base):
            raise PluginError(f"{who}: {found!r} is no class derived from iclbench.{base.__name__}")
        missing = sorted(getattr(found, "__abstractmethods__", ()))
        if missing:
            raise PluginError(f"{who} does not define {', '.join(missing)}")
        lacking = [n for n in getattr(base, "required", ()) if not hasattr(found, n)]
        if lacking:
            raise PluginError(f"{who} does not set {', '.join(lacking)}")
        if getattr(found, "name", name) != name:
            raise PluginError(f"{who} calls itself {found.name!r}")
        return found

    def observe(self, observer: object, name: str) -> None:
        """Let an object of this process answer the run hooks, a progress display say."""
        self._manager.register(observer, name=f"{name} (observer)")

    def forget(self, observer: object) -> None:
        """End what `observe` began."""
        if self._manager.is_registered(observer):
            self._manager.unregister(observer)

    def notify(self, hook: str, **arguments: Any) -> None:
        """Call a run hook plugin by plugin; one that raises is reported once and dropped."""
        plugins = self._manager.get_plugins()
        for plugin in sorted(plugins, key=lambda p: str(self._manager.get_name(p))):
            others = [p for p in plugins if p is not plugin]
            try:
                self._manager.subset_hook_caller(hook, remove_plugins=others)(**arguments)
            except (Exception, SystemExit) as error:
                name = str(self._manager.get_name(plugin))
                label = next((p.label for p in self.plugins if p.name == name), name)
                problem = f"plugin {label} is dropped: {hook} raised {_reason(error)}"
                self.problems.append(problem)
                report(problem)
                self._manager.unregister(plugin)

    def require_sound(self) -> None:
        """Raise PluginError if anything is wrong (`--strict`)."""
        if self.problems:
            raise PluginError("; ".join(self.problems))


@functools.cache
def host() -> PluginHost:
    """The plugins of this process, discovered once; `ICLBENCH_PLUGINS=a,b` loads just those."""
    chosen = os.environ.get("ICLBENCH_PLUGINS")
    only = None if chosen is None else [n.strip() for n in chosen.split(",") if n.strip()]
    return PluginHost(only)


def _origin(point: metadata.EntryPoint) -> tuple[str, str]:
    """The distribution and its version; a damaged installation may lack either."""
    found = point.dist.metadata if point.dist else None
    name, version = (
        str(found[key]) if found and key in found else "unknown" for key in ("Name", "Version")
    )
    return name, version


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if text and isinstance(error, UsageError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _collision(kind: str, name: str, providers: list[Plugin]) -> str:
    who = " and ".join(plugin.label for plugin in providers)
    return f"{kind} {name!r} is provided by {who}; choose with ICLBENCH_PLUGINS"
