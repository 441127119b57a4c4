"""Parts of a run's page: what is proved, its files, how to cite it, and its validation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np

from ...api.record import Record
from ...api.results import FileReference
from ...api.statistics import finite
from ...runs.heldout import HELD_OUT_SIGNIFICANCE, has_held_out, held_out_path
from ...runs.objects import Objects
from .. import formats
from ..curves import COST_TITLES, seed_scores
from ..formats import digits_of
from ..held_out import is_of_public_data
from ..row import Row
from .figure import View
from .minus import with_minus
from .plots import MOST_LINES, Plot, plot, spans_lines

#: What the page calls a record's files; all others hold a metric's values.
_FILE_TITLES = {
    "weights": "weights",
    "answers": "answers",
    "grades": "the grader's answers",
}
_PROVED = {
    "evaluated": "the models were built again and gave these numbers",
    "retrained": "training was repeated and gave these numbers again",
    "asked": "the questions were written again, and the recorded answers give these numbers",
}
#: What the page calls the times of `claims`, which differ in their clock.
RATE = "steps of the budget"
_CLAIMED_TIMES = {
    "seconds of evaluation": "seconds of evaluation, wall clock",
    "seconds of training": "seconds of training, wall clock, all seeds",
    "core time per seed": "CPU time of training, each seed",
    "device time per seed": "GPU time of training, each seed",
    RATE: "speed before training, which set the steps",
}
#: Characters that TeX gives a meaning to.
_TEX = re.compile(r"[\\{}$&#%_^~]")
_TEX_WORDS = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


def proved(record: Record) -> list[tuple[str, str]]:
    """What somebody other than the record's author has checked; empty if nobody has."""
    proof = record.proof
    if proof is None:
        return []
    facts = [
        ("checked", _PROVED["asked" if record.spec.origin == "asked" else proof.kind]),
        ("when", proof.created[:10]),
        ("where", formats.device(proof.environment.device, proof.environment.threads)),
    ]
    if proof.same_bits is not None:
        facts.append(("weights", "the same bits" if proof.same_bits else "different bits"))
    if proof.tolerance:
        facts.append(("tolerance", proof.tolerance))
    code = ", ".join(f"{p.name} {p.version}" for p in proof.plugins)
    return [*facts, ("by the code of", code)] if code else facts


def held_out_in_short(row: Row) -> str:
    """What held-out prompts say of a row, in few words; empty if it has nothing to be held out."""
    if row.held_out is None:
        return "not tested" if row.is_trained and has_held_out(row.record) else ""
    if row.fails_held_out:
        return "✗ significantly worse"
    return "significantly better" if row.held_out_differs else "✓ no significant difference"


def held_out(row: Row) -> str:
    """The held-out score, its difference from the row's with the test, and the prompts' date."""
    if row.held_out is None:
        return "none" if row.is_trained and has_held_out(row.record) else ""
    part = row.held_out.difference
    score = formats.score(row.held_out_score, row.record.ranking)
    ranks = f"better in {part.better:.0%} of pairs of prompts, {_p_value(part.rank_p)} by ranks"
    ends = f"prompts of {row.held_out.created[:10]}"
    if part.mean is None or part.low is None or part.high is None or part.p is None:
        verdict = "differs" if row.held_out_differs else "difference unknown"
        return f"{with_minus(score)}, {verdict}; {ranks}; {ends}"
    write = "{:.4f}" if row.has_digits else "{:.4g}"
    mean, low, high = (write.format(v) for v in (part.mean, part.low, part.high))
    verdict = "significant" if row.held_out_differs else "not significant"
    numbers = with_minus(f"{score}; difference {mean}, 95% interval [{low}, {high}]")
    public = "; their data is public" if is_of_public_data(row.record) else ""
    return (
        f"{numbers}, {_p_value(part.p)} by Welch's test; {ranks}; {verdict}: with hundreds of "
        f"rows, the level is {HELD_OUT_SIGNIFICANCE:g}; {ends}{public}"
    )


def _p_value(p: float) -> str:
    return with_minus("p < 1e-10" if p < 1e-10 else f"p = {p:.2g}")


def wall_clock(row: Row) -> str:
    """The wall-clock time, and of what it is."""
    count = len(row.record.seeds)
    of = "the evaluation"
    if row.record.training is not None:
        of = f"training all {count} seeds" if count > 1 else "training one seed"
    return f"{formats.seconds(row.seconds)} of wall-clock time for {of}"


def training_speed(record: Record) -> str:
    """The steps per second of wall-clock time; empty if nothing was trained."""
    training = record.training
    if training is None:
        return ""
    together = f", {training.replicas} models trained together" if training.replicas > 1 else ""
    rate = f"{training.steps_per_second:.1f} steps per second of wall-clock time"
    return f"{rate}, summed over the seeds{together}"


def claims_in_words(claimed: Mapping[str, str]) -> dict[str, str]:
    """The claims of a record, with the clock that measured each time."""
    return {
        _CLAIMED_TIMES.get(name, name): f"{value}{' of CPU or GPU time' * (name == RATE)}"
        for name, value in claimed.items()
    }


def bibtex(record: Record) -> str:
    """An entry that cites this record by its digest and the code that made it.

    Its author is not known.
    """
    spec = record.spec
    # A record that somebody edited may name none.
    code = [f", made by {p.distribution} {p.version} (code {p.source[:12]})"
            for p in record.plugins if p.name == "iclbench"]  # fmt: skip
    title = _tex(f"{spec.model} on {spec.task} v{spec.task_version}")
    lines = [
        f"@misc{{iclbench-{record.id},",
        f"  title = {{{title}: record {record.id} of iclbench}},",
        f"  year = {{{record.created[:4]}}},",
        f"  note = {{SHA-256 {record.digest}{''.join(code)}}},",
        f"  howpublished = {{{_tex(record.command)}}},",
        "}",
    ]
    return "\n".join(lines)


def _tex(text: str) -> str:
    return _TEX.sub(lambda m: _TEX_WORDS.get(m[0], f"\\{m[0]}"), text)


def files(row: Row, folder: Path, base: str) -> list[View]:
    """The record and every file that it names, with its path in the site, size and SHA-256.

    `folder` holds the records, `base` is where they are in the site.
    """
    path, objects = folder / row.file, Objects(folder)
    address = PurePosixPath(base) / row.file
    views = [_whole("record", path, address)]
    if row.held_out is not None:
        kept = held_out_path(path)
        views.append(_whole("held-out evaluation", kept, held_out_path(address)))
    for kind, reference in row.record.named_files():
        title = _FILE_TITLES.get(kind, f"{kind} of every prompt")
        size = objects.path(reference).stat().st_size
        views.append(_file(title, _shape(reference), f"{base}/{reference.name}", size,
                           reference.sha256))  # fmt: skip
    return views


def _whole(title: str, path: Path, address: PurePosixPath) -> View:
    data = path.read_bytes()
    return _file(title, "json", address.as_posix(), len(data), hashlib.sha256(data).hexdigest())


def _file(title: str, kind: str, path: str, size: int, sha256: str) -> View:
    return {"title": title, "kind": kind, "path": path, "bytes": _bytes(size), "sha256": sha256}


def _shape(reference: FileReference) -> str:
    if reference.shape is None:
        return reference.format
    return f"{reference.format}, {' × '.join(map(str, reference.shape))}"


def _bytes(size: int) -> str:
    """A size in powers of 1,000."""
    # 999,950 bytes are 1.0 MB when rounded.
    for unit, scale, least in (("MB", 1e6, 999_950), ("kB", 1e3, 1_000)):
        if size >= least:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"


def validation_plots(record: Record, metric: str) -> list[Plot]:
    """What was validated while each seed was trained, against steps and operations.

    `metric` is what the ranked metric is called.
    """
    curve = record.validation_curve
    if curve is None:
        return []
    scores = np.where(np.isfinite(seed_scores(curve)), seed_scores(curve), np.nan)
    in_digits = curve.statistic == "mean digits"
    word = digits_of(metric) if in_digits else metric
    plots = []
    for cost, words in (("steps", "training steps"), ("operations", "training compute")):
        xs = getattr(curve, cost)
        if None in xs or sum(x > 0 for x in xs) < 2:
            continue
        lines = [
            {"name": f"seed {seed.seed}", "x": xs, "y": [finite(v) for v in by_seed]}
            for seed, by_seed in zip(record.seeds, scores, strict=True)
        ]
        # Digits are logarithms already.
        log = not in_digits and spans_lines(lines)
        title = "step" if cost == "steps" else COST_TITLES[cost]
        plots.append(plot(f"Validation against {words}", title, f"mean {word} on validation",
                          lines, log=log, log_x=True, most=MOST_LINES))  # fmt: skip
    return plots
