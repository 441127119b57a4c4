"""Studies: the sweep files that packages ship with their plugins, by name, and their figures."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..api.errors import UsageError, unknown
from ..api.record import Record
from ..plugins import PluginHost
from ..sweeps.files import SweepFile, read_sweep_file
from ..sweeps.sweep import recorded
from .formats import device

#: Where published records are, and those of studies, PLUGIN-FILE each.
PUBLISHED = Path("leaderboards/records")
STUDIES = Path("leaderboards/studies")


@dataclass(frozen=True)
class Study:
    """A sweep file with a figure; its name is PLUGIN/FILE."""

    name: str
    path: Path

    @property
    def caption(self) -> str:
        """The file's first comment, which says what the figure is."""
        first = self.path.read_text("utf-8").partition("\n")[0]
        return first.removeprefix("#").strip() if first.startswith("#") else ""


def studies(found: PluginHost) -> list[Study]:
    """Those of all plugins that loaded, from the folder `sweeps` of each one's package."""
    names: dict[Path, str] = {}
    for plugin in found.plugins:
        module = sys.modules.get(plugin.module.partition(":")[0])
        if plugin.problem or module is None:
            continue
        for folder in getattr(module, "__path__", ()):
            for path in sorted(Path(folder, "sweeps").glob("*.toml")):
                if _has_figure(path):
                    names.setdefault(path, f"{plugin.name}/{path.stem}")
    return sorted((Study(name, path) for path, name in names.items()), key=lambda s: s.name)


def _has_figure(path: Path) -> bool:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return any(key in SweepFile.model_fields and key.startswith("figure") for key in content)


def find_study(name: str, found: PluginHost) -> Study:
    """The study of that name, PLUGIN/FILE or FILE alone where one has it, or a sweep file's path.

    Raises UsageError for what there is none of.
    """
    if name.endswith(".toml"):
        return Study(Path(name).stem, Path(name))
    known = studies(found)
    having = [s for s in known if name in {s.name, s.path.stem}]
    if len(having) == 1:
        return having[0]
    if having:
        raise UsageError(f"several figures are named {name!r}: {', '.join(s.name for s in having)}")
    raise unknown("figure", name, {n for s in known for n in (s.name, s.path.stem)})


def records_of(study: Study, size: str, folder: Path | None) -> tuple[SweepFile, list[Record], int]:
    """The study at a size, the records that it has in a folder, and how many of its runs have none.

    Without a folder it is the study's own, or published ones, whichever has most. Raises UsageError
    where there is no record at all.
    """
    file = read_sweep_file(study.path).sized(size)
    published = [STUDIES / study.name.replace("/", "-"), PUBLISHED]
    places = [folder] if folder else [Path(file.out), *(p for p in published if p.is_dir())]
    results = [(recorded(file, place), place) for place in places]
    result, place = max(results, key=lambda pair: len(pair[0].records))
    if not result.records:
        reason = result.failures[0].reason if result.failures else "it has no runs"
        size_flag = "" if size == "quick" else f" --recipe {size}"
        raise UsageError(
            f"{study.name}: no record of its {len(result.failures)} runs is in {place} ({reason}); "
            f"make them: iclbench sweep {study.path}{size_flag} --out {place}"
        )
    return file, result.records, len(result.failures)


def caption(title: str, records: Sequence[Record], missing: int = 0) -> str:
    """What a figure shows: models, budget, seeds, device, and what it lacks."""
    models = _distinct(record.spec.model for record in records)
    parts = [f"{title.rstrip('.')}. " if title else "", f"Models: {', '.join(models)}. "]
    trained = [record for record in records if record.training]
    if trained:
        budgets = _distinct(
            f"{r.training.steps:,} × {r.training.batch:,}" for r in trained if r.training
        )
        seeds = _distinct(str(len(r.spec.seeds)) for r in trained)
        parts.append(f"Budget (steps × prompts): {', '.join(budgets)}; seeds: {', '.join(seeds)}. ")
    else:
        parts.append("Nothing is trained. ")
    prompts = _distinct(f"{r.evaluation.prompts:,}" for r in records)
    devices = _distinct(device(r) for r in records)
    dtypes = _distinct(r.spec.dtype for r in records)
    parts.append(f"{', '.join(prompts)} prompts, {', '.join(dtypes)}, on {', '.join(devices)}.")
    if missing:
        parts.append(f" {missing} runs of the study have no record and are left out.")
    return "".join(parts)


def _distinct(values: object) -> list[str]:
    return list(dict.fromkeys(values))  # type: ignore[call-overload]
