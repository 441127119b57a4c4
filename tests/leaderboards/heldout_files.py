"""Held-out evaluations that tests write beside records."""

from __future__ import annotations

from pathlib import Path

from iclbench.api.spec import digest_of
from iclbench.runs.heldout import HeldOut, write_held_out
from iclbench.runs.heldout_evaluation import evaluate_held_out
from iclbench.runs.store import read_record


def resealed(held_out: HeldOut) -> HeldOut:
    """The evaluation with the digest of its content."""
    digest = digest_of(held_out.model_dump(mode="json", exclude={"digest"}))
    return held_out.model_copy(update={"digest": digest})


def contradicted(path: Path) -> HeldOut:
    """Write an evaluation that is significantly worse than the record in `path`."""
    held_out = evaluate_held_out(path, read_record(path), "00" * 32)
    worse = held_out.difference.model_copy(update={"rank_p": 1e-6, "better": 0.1})
    changed = resealed(held_out.model_copy(update={"difference": worse}))
    write_held_out(path, changed)
    return changed
