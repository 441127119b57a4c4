"""Evaluation prompts that several records share: within a block they are made once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..api.draws import DrawsDigest
from ..api.prompts import Batch
from ..precision import DTYPES
from .plan import Plan

#: Prompts are made and measured in parts of this size: a million at once would take gigabytes.
PART_PROMPTS = 16_384
#: The number of sets that are kept.
KEPT = 4


class _Set(NamedTuple):
    batches: list[Batch]
    digest: DrawsDigest


#: The sets of the block, and of those around it.
_blocks: list[dict[tuple[Any, ...], _Set]] = []


@contextmanager
def shared_prompts() -> Iterator[None]:
    """Within the block, plans with the same evaluation set get the same prompts.

    Only where nothing changes the tasks' code meanwhile. Sets of more than one part are not kept.
    """
    _blocks.append(_blocks[-1] if _blocks else {})
    try:
        yield
    finally:
        _blocks.pop()


@contextmanager
def evaluation_parts(plan: Plan) -> Iterator[tuple[Iterator[list[Batch]], DrawsDigest]]:
    """The evaluation prompts of a plan, in parts that fit in memory, and the digest of their draws.

    The digest is whole once all parts are taken. A thread makes the next part while one is used,
    and ends with the block, whatever was raised in it.
    """
    spec, task = plan.spec, plan.task
    key = (type(task), task.config.model_dump_json(), task.shift, spec.eval_prompts,
           spec.eval_seed, spec.dtype)  # fmt: skip
    known = _blocks[-1].get(key) if _blocks else None
    if known is not None:
        yield iter([known.batches]), known.digest
        return
    digest = task.draws_digest()
    parts = task.evaluation_parts(
        spec.eval_prompts, spec.eval_seed, DTYPES[spec.dtype], PART_PROMPTS, digest
    )
    with ThreadPoolExecutor(max_workers=1) as maker:
        yield _kept(_made_ahead(parts, maker), key, digest), digest


def _made_ahead(parts: Iterator[list[Batch]], maker: ThreadPoolExecutor) -> Iterator[list[Batch]]:
    following = maker.submit(next, parts, None)
    while (part := following.result()) is not None:
        following = maker.submit(next, parts, None)
        yield part


def _kept(
    parts: Iterator[list[Batch]], key: tuple[Any, ...], digest: DrawsDigest
) -> Iterator[list[Batch]]:
    """The parts; a set that has only one is kept for the block."""
    first: list[Batch] | None = None
    count = 0
    for part in parts:
        first, count = (None if count else part), count + 1
        yield part
    if _blocks and first is not None:
        sets = _blocks[-1]
        while len(sets) >= KEPT:
            sets.pop(next(iter(sets)))
        sets[key] = _Set(first, digest)
