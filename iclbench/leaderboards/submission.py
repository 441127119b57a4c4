"""Submitting records to published leaderboards: what is wrong with them, and the summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..api.errors import IclbenchError, RecordError, UsageError
from ..api.record import Record
from ..api.task import Task
from ..files import write_atomically
from ..plugins import host
from ..runs.comparison import Check
from ..runs.store import RecordStore, read_per_prompt, read_record, read_referenced
from ..runs.verify import verify
from .formats import arguments, budget, device, digits_text, interval, number, origin
from .precision import digits

#: Larger checkpoints are not kept beside published records.
LARGEST_WEIGHTS = 2_000_000


@dataclass(frozen=True)
class Submission:
    """A record that may be published, with what `verify` measured."""

    path: Path
    record: Record
    checks: tuple[Check, ...]
    new: bool


def examine(path: Path, store: RecordStore, device_name: str = "auto") -> Submission:
    """Validate and verify one record; raises UsageError with the reason why it is refused.

    Its schema, digest and files must be sound, its task version the one known here, its plugins
    installed and named with their distributions, all its numbers must hold, and no published row
    may be replaced.
    """
    record = read_record(path)
    _require_files(path, record)
    _require_versions(path, record)
    _require_plugins(path, record)
    new = _require_new(path, record, store)
    checks = verify(path, device_name)
    failing = [check for check in checks if not check.holds]
    if failing:
        first = failing[0]
        raise RecordError(
            f"{path}: {len(failing)} of {len(checks)} numbers do not hold; {first.name} is "
            f"{first.measured} here, {first.recorded} in the record"
        )
    return Submission(path, record, tuple(checks), new)


def examine_all(
    paths: Sequence[Path], store: RecordStore, device_name: str = "auto"
) -> tuple[list[Submission], list[str]]:
    """The submissions among the records, and the reasons why the others are refused."""
    found, refused = [], []
    ids: dict[str, Path] = {}
    for path in paths:
        try:
            submission = examine(path, store, device_name)
            other = ids.setdefault(submission.record.id, path)
            if other != path:
                raise UsageError(f"{path}: its run is that of {other}")
        except IclbenchError as error:
            refused.append(str(error))
        else:
            found.append(submission)
    return found, refused


def publish(submission: Submission, store: RecordStore) -> Path:
    """Copy the record and its files into the store, the record last; returns its new path."""
    record = submission.record
    target = store.path(record.spec)
    for reference in (record.per_prompt, record.weights):
        if reference is not None:
            data = read_referenced(submission.path, reference)
            write_atomically(target.parent / reference.file, data)
    write_atomically(target, submission.path.read_bytes())
    return target


def _require_files(path: Path, record: Record) -> None:
    """The files must be the record's own by name, whole, and small enough to be published."""
    stem = f"{record.spec.model}-{record.id}"
    if path.name != f"{stem}.json":
        raise RecordError(f"{path}: a record of this run is named {stem}.json")
    if record.spec.origin in {"trained", "loaded"} and record.weights is None:
        raise RecordError(f"{path}: a {record.spec.origin} model needs its weights beside it")
    for kind, reference in (("prompts", record.per_prompt), ("weights", record.weights)):
        if reference is None:
            continue
        expected = rf"{re.escape(stem)}\.[0-9a-f]{{8}}\.{kind}\.safetensors"
        if re.fullmatch(expected, reference.file) is None:
            raise RecordError(f"{path}: {reference.file!r} is no name of its {kind} file")
        size = len(read_referenced(path, reference))
        if kind == "weights" and size > LARGEST_WEIGHTS:
            raise RecordError(
                f"{path}: its weights are {size / 1e6:.1f} MB; the most that is published is "
                f"{LARGEST_WEIGHTS / 1e6:.0f} MB"
            )
    read_per_prompt(path, record)


def _require_versions(path: Path, record: Record) -> None:
    spec = record.spec
    task: type[Task[Any]] = host().load("task", spec.task, Task)
    if task.version != spec.task_version:
        raise RecordError(
            f"{path}: version {spec.task_version} of {spec.task} is not known, it is now "
            f"version {task.version}"
        )


def _require_plugins(path: Path, record: Record) -> None:
    """Those that took part are named with distribution and version, and are installed here."""
    spec = record.spec
    named = {plugin.name: plugin for plugin in record.plugins}
    for plugin in record.plugins:
        for what in ("distribution", "version", "source"):
            if getattr(plugin, what) in {"", "unknown"}:
                raise RecordError(f"{path}: plugin {plugin.name} is named without its {what}")
    wanted = [("task", spec.task), ("model", spec.model), *(("metric", m) for m in spec.metrics)]
    for kind, name in wanted:
        provider, _ = host().provider(kind, name)
        if provider.name not in named:
            raise RecordError(
                f"{path}: plugin {provider.name}, which provides {kind} {name}, is not named"
            )
        distribution = named[provider.name].distribution
        if distribution != provider.distribution:
            raise RecordError(
                f"{path}: {kind} {name} is of {provider.distribution} here, not of {distribution}"
            )


def _require_new(path: Path, record: Record, store: RecordStore) -> bool:
    """Whether the row is new; raises RecordError when it would replace another."""
    target = store.path(record.spec)
    if not target.exists():
        return True
    if read_record(target).digest != record.digest:
        raise RecordError(f"{path}: {target} is another record of this run; rows are not replaced")
    return False


def summary(found: Sequence[Submission], refused: Sequence[str]) -> str:
    """Markdown for a pull request: what was checked, row by row, and what was refused."""
    held = sum(len(s.checks) for s in found)
    lines = [
        f"## {len(found)} record{'s' if len(found) != 1 else ''}, all {held} numbers hold",
        "",
    ] if found else ["## No record can be published", ""]  # fmt: skip
    if found:
        lines += [
            "| task | model | origin | ranked by | value | 95% interval of the mean | digits "
            "| seeds | budget | device | plugins |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *(_line(submission) for submission in found),
            "",
        ]
    lines += [f"- refused: {reason}" for reason in refused]
    commands = [f"{s.record.command}" for s in found]
    if commands:
        lines += ["Reproduce:", "", "```bash", *commands, "```"]
    return "\n".join(lines).rstrip() + "\n"


def _line(submission: Submission) -> str:
    record = submission.record
    ranking, spec = record.ranking, record.spec
    found = record.metrics[ranking.metric]
    plugins = ", ".join(f"{p.name} ({p.distribution} {p.version})" for p in record.plugins)
    cells = (
        f"{spec.task} v{spec.task_version} ({arguments(record.evaluation.task_args)}) {spec.dtype}",
        f"{spec.model}" + ("" if submission.new else " (there already)"),
        origin(record),
        f"{ranking.statistic} {ranking.metric}",
        number(getattr(found, ranking.statistic), ranking.scale),
        interval(found.low, found.high, ranking.scale),
        digits_text(digits(record)),
        str(len(spec.seeds) or ""),
        budget(record),
        device(record),
        plugins,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
