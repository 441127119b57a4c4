"""Studies: the sweep files with a figure that packages ship beside their plugins."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..api.errors import UsageError, unknown
from ..api.record import Record
from ..console import counted, shell_path
from ..discovery import Plugin
from ..files import LEADERBOARDS, RECORDS, STUDIES
from ..plugins import PluginHost
from ..sweeps.files import QUICK, SweepFile, read_sweep_file
from ..sweeps.sweep import SweepResult, recorded
from . import formats

#: Budgets that a caption lists.
MOST_BUDGETS = 4


@dataclass(frozen=True)
class Study:
    """A sweep file with a figure; its name is PLUGIN/FILE."""

    name: str
    path: Path

    @property
    def caption(self) -> str:
        """The first sentence of the file's first comment, which describes the figure."""
        lines = self.path.read_text("utf-8-sig", errors="replace").splitlines()
        comment = itertools.takewhile(lambda line: line.startswith("#"), lines)
        text = " ".join(line.removeprefix("#").strip() for line in comment)
        # A sentence ends before a capital; "B.3" and "W_e" don't.
        return re.split(r"(?<=[.?!])\s+(?=[A-Z])", text, maxsplit=1)[0]


def studies(host: PluginHost) -> list[Study]:
    """The studies of all loaded plugins, from the folder `sweeps` of each package."""
    names: dict[Path, str] = {}
    for plugin in host.plugins:
        for path in [] if plugin.problem else sweep_files_of(plugin):
            if _has_figure(path):
                names.setdefault(path, f"{plugin.name}/{path.stem}")
    return sorted((Study(name, path) for path, name in names.items()), key=lambda s: s.name)


def sweep_files_of(plugin: Plugin) -> list[Path]:
    """The sweep files that a plugin's package ships, some of which are studies."""
    return [p for folder in plugin.folders for p in sorted((folder / "sweeps").glob("*.toml"))]


def _has_figure(path: Path) -> bool:
    """Whether it is a study, as a file with a mistake may be: whoever asks for it learns of it."""
    try:
        return "figure" in tomllib.loads(path.read_text("utf-8-sig"))
    except OSError:
        return False
    except (ValueError, RecursionError):
        return True


def find_study(name: str, host: PluginHost) -> Study:
    """The study named PLUGIN/FILE, or FILE if only one has that name, or a sweep file's path.

    Raises UsageError for an unknown or ambiguous name.
    """
    if name.endswith(".toml"):
        return Study(Path(name).stem, Path(name))
    known = studies(host)
    matches = [s for s in known if name in {s.name, s.path.stem}]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f"several studies are named {name!r}: {', '.join(s.name for s in matches)}"
        )
    raise unknown("study", name, names_of_studies(host))


def names_of_studies(host: PluginHost) -> set[str]:
    """What `find_study` may be asked for, though a name may be that of several studies."""
    return {name for study in studies(host) for name in (study.name, study.path.stem)}


class StudyRecords(NamedTuple):
    """A study's sweep at a size, its records, the runs that lack one, and the folder of both."""

    file: SweepFile
    result: SweepResult
    folder: Path


def study_records(study: Study, size: str, folder: Path | None) -> StudyRecords:
    """The records of a study in `folder`.

    Without `folder`, they are those in the sweep's own folder; if it has none, the published ones.
    Raises UsageError if there is no record at all.
    """
    file = read_sweep_file(study.path).sized(size)
    own = folder or Path(file.out)
    name = study.name.replace("/", "-")
    published = [Path(LEADERBOARDS, STUDIES, name), Path(LEADERBOARDS, RECORDS)]
    results = {own: recorded(file, own)}
    # A run of one's own that failed must not replace the others by published ones.
    if folder is None and not results[own].records:
        results |= {path: recorded(file, path) for path in published if path.is_dir()}
    chosen = max(results, key=lambda path: len(results[path].records))
    result = results[chosen]
    if not result.records:
        reason = result.failures[0].reason if result.failures else "it has no runs"
        searched = " or ".join(map(str, results))
        size_flag = "" if size == QUICK else f" --size {size}"
        if folder is None and not Path(LEADERBOARDS).is_dir():
            searched += f", and this folder has no {LEADERBOARDS} with the published ones"
        raise UsageError(
            f"{study.name}: none of its {result.missing} runs has a record in {searched} "
            f"({reason}); to make them: iclbench sweep {shell_path(study.path)}"
            f"{size_flag} --out {shell_path(chosen)}"
        )
    return StudyRecords(file, result, chosen)


def caption(title: str, records: Sequence[Record], missing: int = 0) -> str:
    """A figure's caption: models, budget, seeds, prompts, device, and how many runs are missing."""
    models = _distinct(record.spec.model for record in records)
    end = "" if title.endswith((".", "?", "!")) else "."
    parts = [f"{title}{end} " if title else "", f"Models: {models}. "]
    trained = [(r.training, r.spec.seeds) for r in records if r.training]
    if trained:
        budgets = _budgets({(t.steps, t.batch) for t, _ in trained})
        seeds = _numbers(str(len(seeds)) for _, seeds in trained)
        parts.append(f"Training (steps × prompts per step): {budgets}; seeds: {seeds}. ")
    else:
        parts.append("Nothing is trained. ")
    prompts = _numbers(f"{r.main.prompts:,}" for r in records)
    environments = [r.environment for r in records]
    devices = _distinct(formats.device(e.device, e.threads) for e in environments)
    dtypes = _distinct(r.spec.dtype for r in records)
    parts.append(f"{prompts} prompts, {dtypes}, on {devices}.")
    if missing:
        what = "has no record and is" if missing == 1 else "have no record and are"
        parts.append(f" {counted(missing, 'run')} of the study {what} left out.")
    return "".join(parts)


def _budgets(budgets: set[tuple[int, int]]) -> str:
    """Steps × prompts, or the range of the steps of each batch where there are many."""
    if len(budgets) <= MOST_BUDGETS:
        return ", ".join(formats.budget(*budget) for budget in sorted(budgets))
    batches = sorted({batch for _, batch in budgets})
    steps = {b: [s for s, batch in budgets if batch == b] for b in batches}
    return _numbers(f"{_range(steps[b])} × {b:,}" for b in batches)


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _distinct(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _numbers(texts: Iterable[str]) -> str:
    """Each number once; with `and`, since they have commas."""
    return " and ".join(dict.fromkeys(texts))
