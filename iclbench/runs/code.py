"""The code that makes a record: the harness's own and its plugins', now and when it was made."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from ..api.errors import PluginError
from ..api.record import PluginReference, Record
from ..discovery import HERE
from ..files import source_digest
from ..plugins import host

#: The name of the harness among a record's plugins.
HARNESS = "iclbench"

#: The packages and modules of the harness that a number in a record can depend on …
COUNTED = ("api", "nn", "training", "runs", "precision.py")
#: … except these, which only describe, check, read, write or compare.
NOT_COUNTED = frozenset(
    f"{folder}/{name}.py"
    for folder, names in {
        "api": ("__init__", "about", "costs", "entry", "errors", "executor", "names", "options",
                "ranking", "record", "results", "stored", "suite", "tracker", "tuning"),
        "runs": ("__init__", "additions", "alike", "arguments", "asked_answers", "caches",
                 "causality", "checks", "code", "comparison", "cost_facts", "exclusive", "facts",
                 "fixed_steps", "grading_facts", "heldout", "heldout_evaluation", "honesty",
                 "inspection", "objects", "places", "prompt_values", "proofs", "record_weights",
                 "recorded", "recorded_answers", "recorded_endings", "recorded_model", "report",
                 "retraining", "reuse", "rounding", "shift_records", "sizes", "state_size",
                 "store", "stored", "strangers", "suites", "time_limit", "tracking", "tuned",
                 "values", "verify", "weights_facts"),
    }.items()
    for name in names
)  # fmt: skip


def counted_files() -> list[Path]:
    """The files of the harness that a number can depend on."""
    package = Path(__file__).parents[1]
    files = [f for name in COUNTED for f in (package / name, *(package / name).rglob("*.py"))]
    names = {file.relative_to(package).as_posix(): file for file in files if file.suffix == ".py"}
    return [names[name] for name in sorted(names) if name not in NOT_COUNTED]


@functools.cache
def harness_reference() -> PluginReference:
    """The harness as a record names it."""
    return PluginReference(
        name=HARNESS,
        distribution=HARNESS,
        version=metadata.version("iclbench"),
        source=source_digest(counted_files(), Path(__file__).parents[1]),
    )


def installed_code() -> dict[str, PluginReference]:
    """The harness and every sound plugin of this process, by name."""
    references = {
        plugin.name: PluginReference(
            name=plugin.name,
            distribution=plugin.distribution,
            version=plugin.version,
            source=plugin.source_digest(),
        )
        for plugin in host().plugins
        if not plugin.problem
    }
    return {HARNESS: harness_reference(), **references}


def other_code(record: Record, installed: Mapping[str, PluginReference] | None = None) -> list[str]:
    """The plugins of a record that were other code when it was made than what is installed.

    `installed` is `installed_code()`, which reads every plugin's files, where it is known.
    """
    installed = installed_code() if installed is None else installed
    return [plugin.name for plugin in record.plugins if installed.get(plugin.name) != plugin]


def stale_code(record: Record, installed: Mapping[str, PluginReference] | None = None) -> list[str]:
    """The record's other code, as `other_code` gives it, unless its proof is by what is installed.

    A row whose record has any is stale: nobody has seen that the installed code gives its numbers.
    """
    installed = installed_code() if installed is None else installed
    changed = other_code(record, installed)
    if record.proof is None:
        return changed
    checked = {
        plugin.name for plugin in record.proof.plugins if installed.get(plugin.name) == plugin
    }
    return [] if checked.issuperset(plugin.name for plugin in record.plugins) else changed


def checking_code(record: Record) -> list[PluginReference]:
    """The installed code of the record's plugins: what checks it now."""
    installed = installed_code()
    return [installed[plugin.name] for plugin in record.plugins if plugin.name in installed]


def require_plugins(path: Path, record: Record) -> None:
    """Raise PluginError for a plugin of the record that is not there, with the reason."""
    installed = installed_code()
    problems = {plugin.name: plugin.problem for plugin in host().plugins if plugin.problem}
    for plugin in record.plugins:
        if plugin.name in installed:
            continue
        reason = "which is not installed"
        if plugin.distribution == HERE:
            raise PluginError(
                f"{path}: needs a model or task that another process registered; register it here"
            )
        if plugin.name in problems:
            reason = f"which is left out: {problems[plugin.name]}"
        elif _is_installed(plugin.distribution):
            reason = f"whose plugin {plugin.name} is not loaded"
        raise PluginError(f"{path}: needs {plugin.distribution} {plugin.version}, {reason}")


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except (metadata.PackageNotFoundError, ValueError):
        return False
    return True
