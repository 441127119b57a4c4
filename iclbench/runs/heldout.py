"""Held-out evaluations: a trained row on prompts that nobody could know when it was trained.

Their seed follows from the weights, the spec and a salt that the side of the published boards draws
after the submission. So neither the weights nor the number of attempts can be chosen for them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Literal, TypeVar

import numpy as np
from pydantic import Field
from scipy.special import stdtr, stdtrit

from ..api.config import Config, parse_config
from ..api.digits import digits
from ..api.errors import RecordError, UsageError
from ..api.names import Label
from ..api.random import derive_seed
from ..api.record import Environment, Record
from ..api.spec import digest_of
from ..api.statistics import Statistics, finite
from ..devices import environment, find_device
from ..files import read_regular_file, write_atomically
from ..precision import DTYPES, full_precision
from .comparison import RELATIVE, Check, Tolerance, compare_statistics, same
from .exclusive import exclusive
from .facts import recompute
from .measure import Measured, measure
from .models import given_models
from .report import date_now
from .statistics import GRADE, by_prompt, summarize
from .store import read_values
from .values import Arithmetic

AnyPath = TypeVar("AnyPath", bound=PurePath)

#: What a held-out file is called: the record's name with this in place of `.json`.
SUFFIX = ".heldout.json"
#: The most bytes of such a file.
MOST_BYTES = 2**16
#: A difference is significant below this p-value: hundreds of rows are tested.
LEVEL = 0.001
#: How far a difference computed again may move, as a share of its interval.
SHARE = 0.05


class HeldOutDifference(Config):
    """Held-out minus board, in the unit that ranks, for the same seeds on other prompts."""

    mean: float | None
    low: float | None = Field(description="of the 95% interval")
    high: float | None
    p: float | None = Field(description="two-sided, Welch's test over prompts")


class HeldOut(Config):
    """What a held-out file holds."""

    version: Literal[1] = 1
    record: str = Field(pattern="^[0-9a-f]{16}$", description="the run's id")
    weights: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the weights")
    salt: str = Field(pattern="^[0-9a-f]{32,128}$")
    seed: int = Field(description="of the prompts; follows from weights, record and salt")
    prompts: int
    draws: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the raw float64 draws")
    metric: Label
    statistics: Statistics = Field(description="of the metric that ranks")
    difference: HeldOutDifference
    environment: Environment
    created: Label
    digest: str = Field("", description="SHA-256 of the document without this field")

    @property
    def differs(self) -> bool:
        """Whether the row's score differs significantly from that on the board's prompts."""
        return self.difference.p is not None and self.difference.p < LEVEL


def draw_salt() -> str:
    """A salt that nobody can foresee: 32 random bytes."""
    return secrets.token_hex(32)


def held_out_seed(record: Record, salt: str) -> int:
    """The seed of the held-out prompts; raises UsageError for a record without trained weights."""
    if not has_held_out(record):
        raise UsageError(f"the row of {record.spec.model} has no held-out evaluation")
    assert record.weights_file is not None
    return derive_seed("held out", record.weights_file.sha256, record.id, salt)


def has_held_out(record: Record) -> bool:
    """Whether a record gets a held-out evaluation: it was trained, and no grader ranks it."""
    is_graded = record.ranking.metric.startswith(GRADE)
    return record.spec.origin == "trained" and record.weights_file is not None and not is_graded


def held_out_path(record_path: AnyPath) -> AnyPath:
    """Where the held-out evaluation of a record is."""
    return record_path.with_name(f"{record_path.stem}{SUFFIX}")


@exclusive()
def evaluate_held_out(path: Path, record: Record, salt: str, device: str = "auto") -> HeldOut:
    """Evaluate the weights of the trained record in `path` on the prompts that a salt gives."""
    held_out, _ = _evaluate(path, record, salt, device)
    content = held_out.model_dump(mode="json", exclude={"digest"})
    return held_out.model_copy(update={"digest": digest_of(content)})


def _evaluate(path: Path, record: Record, salt: str, device: str) -> tuple[HeldOut, Tolerance]:
    """The evaluation, and how far its statistics may differ on another machine."""
    seed, chosen = held_out_seed(record, salt), find_device(device)
    plan = recompute(path, record).evaluation_plan
    spec = plan.spec.model_copy(update={"eval_seed": seed, "grader": None})
    plan = replace(plan, spec=spec, metrics=(), grader=None)
    with full_precision(DTYPES[spec.dtype]):
        measured = measure(plan, given_models(plan), chosen, 1024)
    arithmetic = Arithmetic(
        spec.dtype, plan.task.errors, measured.target_size, measured.floor_values
    )
    held_out = _document(path, record, salt, seed, measured)
    return held_out.model_copy(
        update={"environment": environment(chosen), "created": date_now()}
    ), arithmetic.tolerance()


def _document(path: Path, record: Record, salt: str, seed: int, measured: Measured) -> HeldOut:
    assert record.weights_file is not None
    name = record.ranking.metric
    known = record.metrics[name].digits
    error = known.error if known is not None else None
    before = by_prompt(read_values(path, {name: record.main.values[name]})[name])
    now = by_prompt(measured.values[name])
    is_digits = record.ranking.statistic == "mean digits" and error is not None
    scored = [digits(v, error) for v in (now, before)] if is_digits and error else [now, before]
    return HeldOut(
        record=record.id,
        weights=record.weights_file.sha256,
        salt=salt,
        seed=seed,
        prompts=record.spec.eval_prompts,
        draws=measured.digest,
        metric=name,
        statistics=summarize(measured.values[name], error),
        difference=_difference(scored[0].mean(axis=0), scored[1].mean(axis=0)),
        environment=record.environment,
        created=record.created,
    )


def _difference(now: np.ndarray, before: np.ndarray) -> HeldOutDifference:
    """The difference of the means of two samples of prompts, by Welch's test."""
    mean = float(now.mean() - before.mean())
    parts = [float(v.var(ddof=1)) / len(v) if len(v) > 1 else np.inf for v in (now, before)]
    variance = sum(parts)
    if not np.isfinite([mean, variance]).all():
        return HeldOutDifference(mean=finite(mean), low=None, high=None, p=None)
    if variance == 0:
        return HeldOutDifference(mean=mean, low=mean, high=mean, p=float(mean == 0))
    squares = sum(p**2 / (len(v) - 1) for p, v in zip(parts, (now, before), strict=True))
    freedom, spread = variance**2 / squares, variance**0.5
    half = float(stdtrit(freedom, 0.975)) * spread
    p = 2 * float(stdtr(freedom, -abs(mean) / spread))
    return HeldOutDifference(mean=mean, low=mean - half, high=mean + half, p=p)


def write_held_out(record_path: Path, held_out: HeldOut) -> Path:
    """Write a held-out evaluation beside its record."""
    path = held_out_path(record_path)
    text = json.dumps(held_out.model_dump(mode="json"), indent=1, allow_nan=False)
    write_atomically(path, (text + "\n").encode())
    return path


def read_held_out(record_path: Path, record: Record) -> HeldOut | None:
    """The held-out evaluation beside a record, or None.

    Raises RecordError for one that is damaged, or of another record, other weights or a seed that
    does not follow from the salt.
    """
    path = held_out_path(record_path)
    if not path.exists():
        return None
    try:
        content = json.loads(read_regular_file(path, MOST_BYTES))
        held_out = parse_config(HeldOut, content, "held-out evaluation")
        digest = digest_of({k: v for k, v in content.items() if k != "digest"})
    except (ValueError, RecursionError, UsageError) as error:
        raise RecordError(f"{path} is not a held-out evaluation: {error}") from None
    problem = _contradiction(held_out, record, digest)
    if problem is not None:
        raise RecordError(f"{path}: {problem}")
    return held_out


def _contradiction(held_out: HeldOut, record: Record, digest: str) -> str | None:
    """Why a held-out evaluation is not that of a record."""
    if digest != held_out.digest:
        return "it was edited: its digest does not match its content"
    if not has_held_out(record):
        return f"a row of origin {record.spec.origin} has none"
    if record.weights_file is None or held_out.weights != record.weights_file.sha256:
        return "it is of other weights than the record's"
    if held_out.record != record.id or held_out.metric != record.ranking.metric:
        return "it is that of another record"
    if held_out.seed != held_out_seed(record, held_out.salt):
        return "its seed does not follow from the weights, the record and its salt"
    return None


def compare_held_out(path: Path, record: Record, device: str) -> Iterator[Check]:
    """A check for every fact of the held-out evaluation beside a record; none if there is none."""
    held_out = read_held_out(path, record)
    if held_out is None:
        return
    now, tolerance = _evaluate(path, record, held_out.salt, device)
    yield same("held out: prompts", held_out.prompts, now.prompts)
    yield same("held out: draws", held_out.draws, now.draws)
    name = held_out.metric
    yield from compare_statistics(
        "held out: ", {name: held_out.statistics}, {name: now.statistics}, tolerance
    )
    yield from _compare_differences(held_out, now, RELATIVE[record.spec.dtype])


def _compare_differences(held_out: HeldOut, now: HeldOut, relative: float) -> Iterator[Check]:
    """Differences are of two sums with rounding each, so they are compared on their scale."""
    a, b = held_out.difference, now.difference
    width = 0.0 if b.low is None or b.high is None else b.high - b.low
    size = abs(now.statistics.digits.mean or 0.0) if now.statistics.digits else 0.0
    slack = SHARE * width + relative * max(size, abs(now.statistics.mean or 0.0))
    for field in ("mean", "low", "high"):
        recorded, computed = getattr(a, field), getattr(b, field)
        known = recorded is not None and computed is not None
        holds = abs(recorded - computed) <= slack if known else recorded is computed
        yield Check(f"held out: difference {field}", recorded, computed, holds)
    both = a.p is not None and b.p is not None
    near = both and abs(np.log10((a.p + 1e-12) / (b.p + 1e-12))) <= 1.0  # type: ignore[operator]
    yield Check("held out: p", a.p, b.p, bool(near) or a.p is b.p)
