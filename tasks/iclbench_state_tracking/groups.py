"""Finite groups by name: symmetric, alternating and cyclic ones, and their products."""

from __future__ import annotations

import functools
import itertools
import re

import torch
from torch import Tensor

#: The largest group: its multiplication table has this many entries squared.
MOST_ELEMENTS = 1000
#: Names besides products of s3, a5, z60, ….
ALIASES = {"parity": "z2"}
_FACTOR = re.compile(r"([saz])([1-9][0-9]{0,3})")


@functools.lru_cache(maxsize=16)
def multiplication_table(name: str) -> Tensor:
    """The product of elements i and j at (i, j), (G, G), int64; element 0 is the identity.

    A permutation's product is taken from left to right: (pq)(x) = q(p(x)). Raises ValueError for
    an unknown name, and for more than 1,000 elements.
    """
    order(name)
    table = torch.zeros(1, 1, dtype=torch.int64)
    for kind, n in _factors(name):
        factor = _cyclic(n) if kind == "z" else _permuting(kind, n)
        size = len(table) * len(factor)
        # The last factor's element changes fastest.
        pairs = table[:, None, :, None] * len(factor) + factor[None, :, None, :]
        table = pairs.reshape(size, size)
    return table


def order(name: str) -> int:
    """The number of elements of a group; raises ValueError as `multiplication_table`."""
    size = 1
    for kind, n in _factors(name):
        size *= n if kind == "z" else _factorial(n) // (2 if kind == "a" and n > 1 else 1)
        if size > MOST_ELEMENTS:
            raise ValueError(f"{name} has more than {MOST_ELEMENTS:,} elements")
    return size


def _factorial(n: int) -> int:
    # Beyond 7! there are more elements than are allowed anyway.
    return functools.reduce(lambda a, b: a * b, range(1, min(n, 12) + 1), 1)


def _factors(name: str) -> list[tuple[str, int]]:
    """s3xz5 → [("s", 3), ("z", 5)]."""
    matches = [_FACTOR.fullmatch(part) for part in ALIASES.get(name, name).split("x")]
    factors = [(match[1], int(match[2])) for match in matches if match is not None]
    if len(factors) < len(matches):
        raise ValueError(
            f"there is no group {name!r}; groups are parity, s<n>, a<n>, z<n>, and products "
            "such as a4xz5"
        )
    return factors


def _cyclic(n: int) -> Tensor:
    """The multiplication table of a cyclic group, whose element k is the rotation by k."""
    rotations = torch.arange(n)
    return (rotations[:, None] + rotations) % n


def _permuting(kind: str, n: int) -> Tensor:
    """The multiplication table of a symmetric or alternating group."""
    # In lexicographic order, the identity first.
    every = itertools.permutations(range(n))
    permutations = torch.tensor([p for p in every if kind == "s" or _is_even(p)])
    places = n ** torch.arange(n).flip(0)
    products = permutations[:, permutations]  # q(p(x)) at (q, p, x)
    return torch.searchsorted(
        (permutations * places).sum(-1), (products * places).sum(-1).mT.contiguous()
    )


def _is_even(permutation: tuple[int, ...]) -> bool:
    pairs = itertools.combinations(permutation, 2)
    return sum(a > b for a, b in pairs) % 2 == 0
