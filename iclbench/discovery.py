"""Discovery of plugins, with each broken plugin isolated from the others.

Every entry point of the group `iclbench` is loaded separately. A plugin that fails to import, to
validate or to answer a catalog hook is left out as a whole, with the reason.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pluggy

from . import hookspecs
from .api.entry import Entry
from .api.errors import PluginError, reason_of, unknown
from .console import output_as_messages, report
from .files import digest_of_module

GROUP = "iclbench"

#: What stands for the distribution of an object that was added in this process.
HERE = "this-process"

#: Seconds after which an import that has not ended is named.
SLOW_SECONDS = 5.0

#: The harness's own entries; `ICLBENCH_PLUGINS` cannot exclude them.
BUILTINS = "iclbench.builtins"

#: The catalog hook of each kind of entry; messages use the kind's name. A bare name is looked up in
#: this order.
CATALOG_HOOKS = {
    "model": "iclbench_architectures",
    "task": "iclbench_tasks",
    "recipe": "iclbench_recipes",
    "suite": "iclbench_suites",
    "metric": "iclbench_metrics",
    "grader": "iclbench_graders",
    "executor": "iclbench_executors",
    "tracker": "iclbench_trackers",
    "command": "iclbench_commands",
}

#: Every hook, those that observe runs too.
HOOKS = [name for name in vars(hookspecs) if name.startswith("iclbench_")]


#: What is installed stays while a process runs.
module_digest = functools.cache(digest_of_module)


@dataclass(frozen=True)
class Plugin:
    """A discovered entry point: its entries by kind, or the problem that kept it out."""

    name: str
    distribution: str
    version: str
    module: str
    import_seconds: float
    problem: str | None = None
    entries: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    #: The digest of code that is in no file, such as that of a notebook.
    source: str | None = None

    @property
    def module_name(self) -> str:
        """The module that is imported, without the object that an entry point may name in it."""
        return self.module.partition(":")[0]

    @property
    def folders(self) -> list[Path]:
        """The folders of the imported package; none for a module, or if it is not imported."""
        return [Path(p) for p in getattr(sys.modules.get(self.module_name), "__path__", ())]

    def source_digest(self) -> str:
        """SHA-256 of the plugin's Python files; it changes when the code changes."""
        return self.source or module_digest(self.module_name)

    @property
    def label(self) -> str:
        """The plugin's name in messages: entry point, distribution, version."""
        return _label(self.name, self.distribution, self.version)


def discover(
    manager: pluggy.PluginManager, only: Iterable[str] | None
) -> tuple[list[Plugin], list[str]]:
    """Load every plugin and register the sound ones; return all plugins, and the problems.

    `only` restricts discovery to these entry-point names, and to the harness's own entries.
    """
    plugins: list[Plugin] = []
    points, problems = _entry_points()
    selected = None if only is None else list(only)
    for point in points:
        if selected is None or point.name in selected or point.value == BUILTINS:
            taken = next((p for p in plugins if p.name == point.name and not p.problem), None)
            plugin = load_plugin(manager, point, taken)
            plugins.append(plugin)
            if plugin.problem:
                problems.append(f"plugin {plugin.label} is left out: {plugin.problem}")
    installed = {point.name for point in points}
    for name in selected or []:
        if name not in installed:
            nearest = difflib.get_close_matches(name, sorted(installed), n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            problems.append(f"ICLBENCH_PLUGINS names {name!r}, which is not installed{hint}")
    return plugins, problems


@contextlib.contextmanager
def guarded(label: str) -> Iterator[None]:
    """Run code of a plugin, which messages call `label`, such as its import.

    What it prints goes to standard error. If it takes long, a line says so. Its SystemExit,
    KeyboardInterrupt or other BaseException becomes a PluginError; a user's Ctrl-C stays one.
    """
    line = f"{label} has been loading for {SLOW_SECONDS:g} s, with what it imports, such as torch"
    notice = threading.Timer(SLOW_SECONDS, report, [line])
    notice.daemon = True
    with _interrupts() as interrupts:
        try:
            notice.start()
            with output_as_messages:
                yield
        except BaseException as error:
            if interrupts:
                raise KeyboardInterrupt from error
            if isinstance(error, Exception):
                raise
            raise PluginError(reason_of(error)) from error
        finally:
            notice.cancel()
        if interrupts:
            # The code has caught it.
            raise KeyboardInterrupt


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collect the interrupts that the process receives; code may raise KeyboardInterrupt itself."""
    received: list[int] = []
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield received
        return

    def note(number: int, frame: Any) -> None:
        received.append(number)
        previous(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, previous)


def _entry_points() -> tuple[list[metadata.EntryPoint], list[str]]:
    """The group's entry points sorted by name, and the problems in reading them.

    If a distribution is installed twice, the copy first on the path counts.
    """
    by_distribution: dict[str, list[metadata.EntryPoint]] = {}
    problems = []
    for distribution in metadata.distributions():
        try:
            points = [p for p in distribution.entry_points if p.group == GROUP]
        except Exception as error:
            problems.append(
                f"the entry points of {_name_and_version(distribution)[0]} cannot be read: "
                f"{reason_of(error)}"
            )
            continue
        if points:
            by_distribution.setdefault(_name_and_version(points[0].dist)[0], points)
    points = [point for points in by_distribution.values() for point in points]
    return sorted(points, key=lambda point: (point.name, point.value)), problems


def load_plugin(
    manager: pluggy.PluginManager, point: metadata.EntryPoint, taken: Plugin | None
) -> Plugin:
    """Import, register and query one plugin; undo the registration if anything fails.

    `taken` is a loaded plugin of the same name, if there is one.
    """
    distribution, version = _name_and_version(point.dist)
    started = time.perf_counter()
    module: Any = None
    problem: str | None = None
    entries: dict[str, tuple[Entry, ...]] = {}
    try:
        if taken is not None:
            raise PluginError(f"its name is taken by {taken.label}")
        with guarded(f"plugin {_label(point.name, distribution, version)}"):
            module = point.load()
            import_seconds = time.perf_counter() - started
            if manager.is_registered(module):
                name = manager.get_name(module)
                raise PluginError(f"{point.value} is already loaded as plugin {name}")
            _check_functions(manager, module)
            manager.register(module, name=point.name)
            _check_hooks(manager, module)
            entries = {kind: _query(manager, module, hook) for kind, hook in CATALOG_HOOKS.items()}
    except Exception as error:
        import_seconds = time.perf_counter() - started
        problem = reason_of(error)
        if module is not None and manager.get_plugin(point.name) is module:
            manager.unregister(module)
    return Plugin(
        name=point.name,
        distribution=distribution,
        version=version,
        module=point.value,
        import_seconds=import_seconds,
        problem=problem,
        entries=entries,
    )


def _check_functions(manager: pluggy.PluginManager, module: Any) -> None:
    """Refuse unmarked hooks, which pluggy would ignore, and arguments that a hook does not give."""
    for name in HOOKS:
        function = getattr(module, name, None)
        if not callable(function):
            continue
        if not manager.parse_hookimpl_opts(module, name):
            raise PluginError(f"{name} is not marked with @hookimpl")
        given = list(inspect.signature(getattr(hookspecs, name)).parameters)
        for argument in inspect.signature(function).parameters.values():
            required = argument.default is argument.empty and "VAR" not in argument.kind.name
            if required and argument.name not in given:
                gives = f"gives {', '.join(given)}" if given else "gives no arguments"
                raise PluginError(f"{name} takes {argument.name!r}, but the hook {gives}")


def _check_hooks(manager: pluggy.PluginManager, module: Any) -> None:
    """Refuse unknown hooks, which pluggy would ignore."""
    for caller in manager.get_hookcallers(module) or []:
        optional = all(i.optionalhook for i in caller.get_hookimpls() if i.plugin is module)
        if not caller.has_spec() and not optional:
            raise PluginError(str(unknown("hook", caller.name, HOOKS)))


def _query(manager: pluggy.PluginManager, module: Any, hook: str) -> tuple[Entry, ...]:
    """One plugin's entries from one catalog hook; raises PluginError for an invalid one."""
    others = [plugin for plugin in manager.get_plugins() if plugin is not module]
    try:
        answers = manager.subset_hook_caller(hook, remove_plugins=others)()
        single = any(isinstance(answer, Entry) for answer in answers)
        entries = () if single else tuple(entry for answer in answers for entry in answer)
    except KeyboardInterrupt:
        raise  # `guarded` knows whose it is
    except BaseException as error:
        raise PluginError(f"{hook} raised {reason_of(error)}") from error
    if single:
        raise PluginError(f"{hook} returned an Entry; return a list of Entry")
    for entry in entries:
        problem = entry.problem() if isinstance(entry, Entry) else f"{entry!r} is not an Entry"
        if problem:
            raise PluginError(f"{hook}: {problem}")
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise PluginError(f"{hook}: {name!r} appears twice")
    return entries


def _label(name: str, distribution: str, version: str) -> str:
    return f"{name} ({distribution} {version})"


@functools.cache  # parsing takes long: metadata hold a README
def _name_and_version(distribution: metadata.Distribution | None) -> tuple[str, str]:
    """A distribution's name and version; "unknown" if a damaged installation lacks one."""
    try:
        fields = distribution.metadata if distribution else None
    except Exception:  # such as text that is not UTF-8
        fields = None
    name, version = (
        str(fields[key]) if fields and key in fields else "unknown" for key in ("Name", "Version")
    )
    return name, version
