"""The conformance kit: every check of every entry of a plugin."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Literal

from ..api.errors import PLUGIN_FAILURES, UsageError, reason_of, unknown
from ..discovery import Plugin
from ..plugins import host
from ..runs.places import place_of
from .kinds import checks_of_entry
from .trials import NotCheckedError
from .whole import checks_of_plugin

Status = Literal["ok", "not checked", "failed"]


@dataclass(frozen=True)
class Case:
    """One check of one entry. `check` says what it covered, and raises what it finds wrong."""

    plugin: str
    kind: str
    name: str
    what: str
    check: Callable[[], str]

    @property
    def label(self) -> str:
        """The case in one line, the same in every process."""
        return f"{self.kind} {self.name}: {self.what}"


@dataclass(frozen=True)
class CaseResult:
    """How a case ended: what it covered, why it was not checked, or what is wrong."""

    case: Case
    status: Status
    text: str
    seconds: float
    #: What the check raised, with its traceback; None unless it failed.
    error: BaseException | None = None


def plugins_of(package: str) -> list[Plugin]:
    """The plugins of a distribution, or the plugin with this entry point or module.

    Raises UsageError for an unknown name.
    """
    wanted = _normal(package)
    named: dict[str, list[Plugin]] = {}
    for plugin in host().plugins:
        for name in {_normal(name) for name in _names(plugin)}:
            named.setdefault(name, []).append(plugin)
    if wanted not in named:
        raise _unknown_package(package)
    return named[wanted]


def _unknown_package(package: str) -> UsageError:
    """Why a package has no plugins here."""
    try:
        metadata.distribution(package)
    except (metadata.PackageNotFoundError, ValueError):
        names = {name for plugin in host().plugins for name in _names(plugin)}
        return unknown("package", package, names, "`iclbench plugins` lists what is installed here")
    return UsageError(
        f"{package} is installed, but has no plugin: its pyproject.toml needs an entry point in "
        "the group `iclbench`"
    )


def _names(plugin: Plugin) -> tuple[str, ...]:
    return plugin.distribution, plugin.name, plugin.module_name


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def cases_of(package: str) -> list[Case]:
    """Every case of a package's plugins, in a fixed order."""
    return [case for plugin in plugins_of(package) for case in _cases(plugin)]


def run_case(case: Case) -> CaseResult:
    """Run a check; only Ctrl-C passes."""
    started = time.perf_counter()
    status: Status = "failed"
    failure: BaseException | None = None
    try:
        status, text = "ok", case.check()
    except NotCheckedError as reason:
        status, text = "not checked", str(reason)
    except PLUGIN_FAILURES as error:
        text = ", at ".join(filter(None, [reason_of(error), place_of(error)]))
        failure = error
    return CaseResult(case, status, text, time.perf_counter() - started, failure)


def check_plugin(package: str) -> list[CaseResult]:
    """Run the whole kit on a package; raises UsageError for an unknown one."""
    return [run_case(case) for case in cases_of(package)]


def _cases(plugin: Plugin) -> Iterator[Case]:
    for what, check in checks_of_plugin(plugin):
        yield Case(plugin.name, "plugin", plugin.name, what, check)
    for kind, entries in plugin.entries.items():
        for entry in entries:
            try:
                checks = list(checks_of_entry(kind, entry.name))
            except PLUGIN_FAILURES as error:
                checks = [("loads", partial(_fail, error))]
            for what, check in checks:
                yield Case(plugin.name, kind, entry.name, what, check)


def _fail(error: BaseException) -> str:
    raise error
