"""What a record must have to be published, besides facts that hold: enough prompts, small files."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from ..api.errors import RecordError
from ..api.names import is_plain_name, visible
from ..api.record import Record
from ..runs.heldout import has_held_out
from ..runs.objects import Objects
from ..runs.statistics import GRADE
from .argument_numbers import require_few_numbers
from .formats import in_words

#: The fewest prompts of a row that held-out prompts check: fewer could not contradict it.
FEWEST_PROMPTS = 32
#: The most bytes of weights that are published.
LARGEST_WEIGHTS = 8_000_000


def require_publishable(path: Path, record: Record) -> None:
    """Raise RecordError for many arguments, few prompts, or files that are large or damaged."""
    require_few_numbers(record)
    if has_held_out(record) and record.spec.eval_prompts < FEWEST_PROMPTS:
        raise RecordError(
            f"{path}: {record.spec.eval_prompts} prompts are too few to compare it with held-out "
            f"ones: at least {FEWEST_PROMPTS}"
        )
    _require_files(path, record)


def require_costs(path: Path, record: Record) -> None:
    """Raise RecordError for a new row that lacks what some published ones lack.

    Those were trained before it was measured. A new one would escape its checks.
    """
    if record.spec.origin != "trained":
        return
    missing = [name for name in ("budget", "validation_curve") if getattr(record, name) is None]
    if record.ranking.metric.startswith(GRADE) and "validation_curve" in missing:
        missing.remove("validation_curve")  # grading on the way would cost
    if missing:
        names = " and ".join(in_words(name) for name in missing)
        raise RecordError(f"{path}: it lacks its {names}, which every training measures now")


def _require_files(path: Path, record: Record) -> None:
    """The files must be named after the record, whole, and small enough to be published."""
    name = PurePosixPath(record.file).name
    if path.name != name:
        raise RecordError(f"{path}: its name must be {name}")
    spec = record.spec
    checkpoint = PurePosixPath(spec.init or spec.weights or "").name
    if spec.checkpoint_digest is not None and not is_plain_name(checkpoint):
        raise RecordError(
            f"{path}: the name of its checkpoint, {visible(checkpoint, 100)!r}, is not plain"
        )
    objects = Objects.beside(path)
    for kind, reference in record.named_files():
        size = objects.sound_path(reference).stat().st_size
        if kind == "weights" and size > LARGEST_WEIGHTS:
            raise RecordError(
                f"{path}: its weights are {size / 1e6:.1f} MB; the limit is "
                f"{LARGEST_WEIGHTS / 1e6:.0f} MB"
            )
