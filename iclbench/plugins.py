"""The plugins of this process: the catalog of their entries, and the run hooks."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import pkgutil
import secrets
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pluggy

from . import hookspecs
from .api.entry import Entry
from .api.errors import PLUGIN_FAILURES, PluginError, UsageError, reason_of, unknown
from .console import output_as_messages, report
from .discovery import CATALOG_HOOKS, HERE, Plugin, discover, guarded, load_plugin
from .files import digest_of_module

#: The classes that have their name from their entry, so that those derived from them do not.
_NAMED: weakref.WeakSet[type] = weakref.WeakSet()

#: The digests of modules of added plugins, by name, each with the spec that loaded the module.
_digests: dict[str, tuple[ModuleSpec, str]] = {}


class PluginHost:
    """All plugins of one process, isolated from one another."""

    def __init__(self, only: Iterable[str] | None = None) -> None:
        """Discover plugins; `only` restricts them to these entry-point names."""
        self._manager = pluggy.PluginManager("iclbench")
        self._manager.add_hookspecs(hookspecs)
        self._is_restricted = only is not None
        self.plugins, self.problems = discover(self._manager, only)
        self._imported: dict[str, Any] = {}
        for kind in CATALOG_HOOKS:
            for name, providers in self._providers(kind).items():
                if len(providers) > 1:
                    self.problems.append(_collision(kind, name, providers))

    def entries(self, kind: str) -> Iterator[tuple[Plugin, Entry]]:
        """Every entry of a kind with its plugin, sorted by name."""
        pairs = [(p, entry) for p in self.plugins for entry in p.entries.get(kind, ())]
        return iter(sorted(pairs, key=lambda pair: (pair[1].name, pair[0].name)))

    def _providers(self, kind: str) -> dict[str, list[Plugin]]:
        """The plugins that provide each name of a kind."""
        table: dict[str, list[Plugin]] = {}
        for plugin, entry in self.entries(kind):
            table.setdefault(entry.name, []).append(plugin)
        return table

    def provider(self, kind: str, name: str) -> tuple[Plugin, Entry]:
        """The plugin that provides `name`, and its entry.

        Raises UsageError if no plugin provides it, PluginError if two do.
        """
        providers = [
            (plugin, entry)
            for plugin in self.plugins
            for entry in plugin.entries.get(kind, ())
            if entry.name == name
        ]
        if len(providers) == 1:
            return providers[0]
        if len(providers) > 1:
            labels = sorted((plugin for plugin, _ in providers), key=lambda plugin: plugin.name)
            raise PluginError(_collision(kind, name, labels))
        listed = "" if self._is_restricted else "`iclbench plugins` lists what is installed here"
        error = unknown(kind, name, self._providers(kind), listed)
        broken = [p.name + f" ({p.problem})" * (p.name == name) for p in self.plugins if p.problem]
        notes = [f"left out: {', '.join(broken)}"] if broken else []
        notes += ["ICLBENCH_PLUGINS selects the plugins"] if self._is_restricted else []
        notes += [f"it is a {other}" for other in CATALOG_HOOKS if name in self._providers(other)]
        raise UsageError(f"{error} ({'; '.join(notes)})") if notes else error

    def target(self, kind: str, name: str) -> tuple[Plugin, Any]:
        """The plugin that provides `name`, and the object itself, imported now.

        Raises PluginError if it cannot be imported.
        """
        plugin, entry = self.provider(kind, name)
        target = entry.target
        if not isinstance(target, str):
            return plugin, target
        try:
            # A guard starts a thread, which a sweep of many cells would notice.
            if target not in self._imported:
                with guarded(f"{kind} {name!r} of {plugin.label}"):
                    self._imported[target] = pkgutil.resolve_name(target)
            return plugin, self._imported[target]
        except Exception as error:
            reason = reason_of(error)
            raise PluginError(f"{kind} {name!r} of {plugin.label} fails: {reason}") from error

    def load(self, kind: str, name: str, base: type) -> Any:
        """The complete subclass of `base` that provides `name`; for a recipe, the instance.

        Raises UsageError for an unknown name, and PluginError for a target that can't be imported
        or is something else.
        """
        plugin, target = self.target(kind, name)
        label = f"{kind} {name!r} of {plugin.label}"
        if kind == "recipe":
            if not isinstance(target, base):
                raise PluginError(f"{label}: {target!r} is not an iclbench.{base.__name__}")
        elif not isinstance(target, type) or not issubclass(target, base):
            raise PluginError(f"{label}: {target!r} is not a subclass of iclbench.{base.__name__}")
        abstract = sorted(getattr(target, "__abstractmethods__", ()))
        if abstract:
            raise PluginError(f"{label} does not define {', '.join(abstract)}")
        if isinstance(target, type):
            self._require_one_entry(kind, target, name)
            _name_after_entry(target, name)
        unset = [
            name for name in getattr(base, "required", ()) if getattr(target, name, None) is None
        ]
        if unset:
            raise PluginError(f"{label} does not set {', '.join(unset)}")
        if isinstance(target, type) and hasattr(base, "Config"):
            _require_config(target, label)
        if getattr(target, "name", name) != name:
            raise PluginError(f"{label} calls itself {target.name!r}")
        return target

    def _require_one_entry(self, kind: str, target: type[Any], name: str) -> None:
        """Raise PluginError for a class that is named after another entry: it has one name."""
        other = getattr(target, "name", name)
        if other == name or target not in _NAMED or other not in self._providers(kind):
            return
        if self.target(kind, other)[1] is target:
            raise PluginError(
                f"{kind}s {other!r} and {name!r} are one class: derive a class for each"
            )

    def add(self, plugin: object, name: str) -> None:
        """Add an object with hooks as a plugin of this process, such as one written in a notebook.

        Nobody else can verify its records: for that, make it a distribution. A plugin that was
        added before under this name is replaced. Raises PluginError if a hook is invalid, or if
        another plugin has an entry of the same name.
        """
        earlier = next((p for p in self.plugins if p.name == name), None)
        if earlier is not None and earlier.distribution != HERE:
            raise PluginError(f"plugin {name!r} is already there: {earlier.label}")
        replaced = self._manager.unregister(name=name) if earlier is not None else None
        loaded = _load_object(self._manager, plugin, name)
        problem = loaded.problem or self._objection(plugin, loaded, earlier)
        if problem:
            self._manager.unregister(name=name)
            if replaced is not None:
                self._manager.register(replaced, name=name)
            raise PluginError(problem)
        self.plugins = [*(p for p in self.plugins if p is not earlier), loaded]
        # A module that was reloaded has new classes under the names of the old ones.
        self._imported.clear()

    def _objection(self, plugin: object, loaded: Plugin, earlier: Plugin | None) -> str | None:
        if not self._manager.get_hookcallers(plugin):
            return f"plugin {loaded.name!r} has no hooks, such as iclbench_architectures"
        for kind, entries in loaded.entries.items():
            for other, entry in self.entries(kind):
                if other is not earlier and entry.name in {its.name for its in entries}:
                    return f"{kind} {entry.name!r} is provided by {other.label} already"
        return None

    def hooks_of(self, plugin: Plugin) -> set[str]:
        """The names of the hooks that a plugin implements."""
        registered = self._manager.get_plugin(plugin.name)
        callers = self._manager.get_hookcallers(registered) if registered is not None else None
        return {caller.name for caller in callers or ()}

    @contextmanager
    def observing(self, observer: object, name: str) -> Iterator[None]:
        """Within the block, call an object's run hooks too, such as those of a progress display."""
        # The number tells two observers of one name apart.
        self._manager.register(observer, name=f"{name} (observer)#{id(observer)}")
        try:
            yield
        finally:
            # One that raised is no longer registered.
            if self._manager.is_registered(observer):
                self._manager.unregister(observer)

    def notify(self, hook: str, **arguments: Any) -> None:
        """Call a run hook, one plugin at a time; report and drop a plugin that raises."""
        plugins = self._manager.get_plugins()
        for plugin in sorted(plugins, key=lambda p: str(self._manager.get_name(p))):
            # pluggy stops at the first exception, so call each plugin without the others.
            others = [p for p in plugins if p is not plugin]
            try:
                self._manager.subset_hook_caller(hook, remove_plugins=others)(**arguments)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also a CancelledError
                name = str(self._manager.get_name(plugin))
                shown = name.partition("#")[0]
                label = next((p.label for p in self.plugins if p.name == name), shown)
                problem = f"plugin {label} is dropped: {hook} raised {reason_of(error)}"
                self.problems.append(problem)
                report(problem)
                self._manager.unregister(plugin)

    def require_sound(self) -> None:
        """Raise PluginError if any plugin has a problem (`--strict`)."""
        if self.problems:
            raise PluginError("; ".join(self.problems))


@functools.cache
def host() -> PluginHost:
    """The plugins of this process, discovered once; `ICLBENCH_PLUGINS=a,b` selects plugins."""
    chosen = os.environ.get("ICLBENCH_PLUGINS")
    only = None if chosen is None else [n.strip() for n in chosen.split(",") if n.strip()]
    return PluginHost(only)


def _require_config(target: type[Any], label: str) -> None:
    """Raise PluginError for arguments of another base, which would take misspelled names."""
    from .api.config import Config  # imports pydantic, which those who only list need not wait for

    config = getattr(target, "Config", None)
    if config is not None and not (isinstance(config, type) and issubclass(config, Config)):
        raise PluginError(f"{label}: its Config is not derived from iclbench.Config")


def _name_after_entry(target: type[Any], name: str) -> None:
    """Give a class that neither it nor a base names the name of its entry."""
    stated = any("name" in vars(base) and base not in _NAMED for base in target.__mro__)
    if not stated:
        target.name = name
        _NAMED.add(target)


def _collision(kind: str, name: str, providers: list[Plugin]) -> str:
    labels = " and ".join(plugin.label for plugin in providers)
    return f"{kind} {name!r} is provided by {labels}: rename it in one of them"


def _load_object(manager: pluggy.PluginManager, target: object, name: str) -> Plugin:
    """The plugin that an object of this process is, in the place of an entry point."""
    module = target.__name__ if isinstance(target, ModuleType) else type(target).__module__
    point: Any = SimpleNamespace(name=name, value=module, dist=None, load=lambda: target)
    loaded = load_plugin(manager, point, None)
    names = {module, *_modules_of_targets(loaded)}
    # The digest of a package is that of all its modules.
    source = _digest_of_modules({n for n in names if n.partition(".")[0] not in names - {n}})
    return replace(loaded, distribution=HERE, version="0", source=source)


def _digest_as_loaded(module: ModuleType) -> str:
    """The digest of a module when it was first seen since it was loaded.

    What has been edited since does not run before it is reloaded, which gives the module a new
    spec. The module that Python was started with has none.
    """
    spec = module.__spec__
    if spec is None:
        return digest_of_module(module.__name__)
    known, digest = _digests.get(module.__name__, (None, ""))
    if known is not spec:
        digest = digest_of_module(module.__name__)
        _digests[module.__name__] = spec, digest
    return digest


def _modules_of_targets(plugin: Plugin) -> Iterator[str]:
    """The modules that a plugin's entries are of."""
    for entry in (entry for entries in plugin.entries.values() for entry in entries):
        if isinstance(entry.target, str):
            yield entry.target.partition(":")[0]
        else:
            yield getattr(entry.target, "__module__", type(entry.target).__module__)


def _digest_of_modules(names: set[str]) -> str:
    """The digest of modules as they were loaded: a notebook may have edited and reloaded them.

    Nobody can tell whether code without a file is what it was, so each is other code.
    """
    try:
        with output_as_messages:
            found = [importlib.import_module(name) for name in sorted(names)]
    except PLUGIN_FAILURES:
        return secrets.token_hex(32)  # whoever uses the entry learns of it
    if not all(Path(getattr(module, "__file__", None) or "").is_file() for module in found):
        return secrets.token_hex(32)
    digests = [_digest_as_loaded(module) for module in found]
    whole = hashlib.sha256("".join(digests).encode()).hexdigest()
    return whole if len(digests) > 1 else digests[0]
