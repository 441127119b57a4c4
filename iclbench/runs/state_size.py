"""How large a state an architecture carries from position to position."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ..api.architecture import Architecture
from ..api.capabilities import StatesSize, offers
from ..api.config import Config
from ..api.errors import UsageError
from ..api.prompts import Regression, Signature, Text

#: Lengths, in positions, at which `describe_state` compares.
LENGTHS = (64, 128)
#: Dimension of the inputs and size of the vocabulary of its prompts.
DIM, VOCABULARY = 5, 16


def state_sizes(module: nn.Module, length: int) -> tuple[int, ...] | None:
    """Return the numbers per prompt that each layer keeps after `length` positions, or None.

    Raises UsageError where a mixer in the module gives something else, which can't be joined.
    """
    stating: Any = module
    if not offers(module, StatesSize):
        return None
    try:
        sizes: tuple[int, ...] | None = stating.state_sizes(length)
    except TypeError as error:
        name = type(module).__name__
        raise UsageError(
            f"state_sizes() of {name}: a mixer must give (n, …) or None: {error}"
        ) from error
    return sizes


def state_bytes(module: nn.Module, length: int, dtype: torch.dtype) -> tuple[int, ...] | None:
    """Return the bytes per prompt that each layer keeps after `length` positions, or None."""
    sizes = state_sizes(module, length)
    return None if sizes is None else tuple(size * dtype.itemsize for size in sizes)


def describe_state(architecture: Architecture, config: Config) -> str | None:
    """Return the bytes per prompt of each layer's state in float32 at two lengths, or None.

    None means that the model does not tell, or does neither regression nor text. A model is built
    for each length.
    """
    texts: list[str] = []
    for length in LENGTHS:
        signature = next(
            (s for s in _signatures(length) if architecture.supports(s, config) is None), None
        )
        if signature is None:
            return None
        sizes = state_bytes(architecture.build(signature, config), length, torch.float32)
        if sizes is None:
            return None
        texts.append(layers_text(sizes))
    (short, long), (fewer, more) = texts, LENGTHS
    growth = "the same" if short == long else long
    return f"{short} after {fewer} positions, {growth} after {more}"


def layers_text(sizes: tuple[int, ...]) -> str:
    """Return sizes in bytes, equal neighbours once: `2 × 4,096 + 512 bytes`."""
    parts = []
    for size, group in itertools.groupby(sizes):
        count = len(list(group))
        parts.append(f"{size:,}" if count == 1 else f"{count} × {size:,}")
    return f"{' + '.join(parts) or '0'} bytes"


def _signatures(length: int) -> Iterator[Signature]:
    """Yield a regression task with one query and a text task, both of `length` positions."""
    examples = length - 1
    shapes = {"x": (examples, DIM), "y": (examples, 1), "query": (1, DIM)}
    yield Signature(Regression, "query", length, DIM + 1, 1, (examples,), shapes=shapes)
    yield Signature(
        Text, "token", length, 0, VOCABULARY, (examples,), causal=True, vocabulary=VOCABULARY
    )
