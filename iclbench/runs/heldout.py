"""Held-out evaluations: a trained row on prompts that nobody could know when it was trained.

Their seed follows from the weights, the spec and a salt that the side of the published boards draws
after the submission. So neither the weights nor the number of attempts can be chosen for them.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path, PurePath
from typing import Literal, TypeVar

from pydantic import Field, model_validator

from ..api.config import Config, parse_config
from ..api.errors import RecordError, UsageError
from ..api.names import Label
from ..api.random import derive_seed
from ..api.record import Environment, Record
from ..api.spec import digest_of
from ..api.statistics import Statistics
from ..files import read_json, write_atomically
from .statistics import GRADE

AnyPath = TypeVar("AnyPath", bound=PurePath)

#: What a held-out file is called: the record's name with this in place of `.json`.
SUFFIX = ".heldout.json"
#: The most bytes of such a file.
MOST_BYTES = 2**16
#: A prompt solved to this many digits below the attainable counts as that: the rest is rounding.
NEAR_ATTAINABLE = 1.0
#: A difference is significant below this p-value. Two tests then mark at most one in a thousand of
#: the rows that nobody fitted to the board's prompts, on average over boards: the rows of one board
#: share its prompts, and an unusual sample of these marks many of them. Hundreds are tested.
HELD_OUT_SIGNIFICANCE = 0.0005


class HeldOutDifference(Config):
    """Held-out minus board, in the unit that ranks, for the same seeds on other prompts.

    Where the floor is exact, digits count up to one below the attainable.
    """

    mean: float | None
    low: float | None = Field(description="of the 95% interval")
    high: float | None
    p: float | None = Field(ge=0, le=1, description="two-sided, Welch's test over prompts")
    rank_p: float = Field(ge=0, le=1, description="two-sided, the Mann–Whitney test over prompts")
    better: float = Field(
        ge=0, le=1, description="share of pairs of prompts in which the held-out one is better"
    )

    @model_validator(mode="after")
    def _check(self) -> HeldOutDifference:
        known = [bound for bound in (self.low, self.mean, self.high) if bound is not None]
        if known != sorted(known):
            raise ValueError("the difference is not in its interval")
        return self


class HeldOut(Config):
    """What a held-out file holds."""

    version: Literal[1] = 1
    record: str = Field(pattern="^[0-9a-f]{16}$", description="the run's id")
    weights: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the weights")
    salt: str = Field(pattern="^[0-9a-f]{32,128}$")
    seed: int = Field(description="of the prompts; follows from weights, record and salt")
    prompts: int = Field(ge=1)
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
        return _is_significant(self.difference.p)

    @property
    def ranks_differ(self) -> bool:
        """Whether its prompts do, by ranks: a few bad draws can hide that from a mean."""
        return _is_significant(self.difference.rank_p)


def _is_significant(p: float | None) -> bool:
    return p is not None and p < HELD_OUT_SIGNIFICANCE


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
    """Whether a record gets a held-out evaluation: it has weights, and no grader ranks it."""
    return record.weights_file is not None and not record.ranking.metric.startswith(GRADE)


def held_out_path(record_path: AnyPath) -> AnyPath:
    """Where the held-out evaluation of a record is."""
    return record_path.with_name(f"{record_path.stem}{SUFFIX}")


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
        content = read_json(path, MOST_BYTES)
        held_out = parse_config(HeldOut, content, "held-out evaluation")
    except (ValueError, UsageError) as error:
        raise RecordError(f"{path} is not a held-out evaluation: {error}") from None
    digest = digest_of({k: v for k, v in content.items() if k != "digest"})
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
