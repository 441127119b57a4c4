"""Whether two models answer alike: a symmetry of the weights hides a copy, but not its answers.

Key biases of attention may be shifted, hidden units reordered, and a layer scaled up where the next
one is scaled down: the weights then differ, and all answers are the same but for rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

#: Two models answer alike if so large a part of the values of each metric agree to within this
#: part of them: rounding moves the others further. No two published trainings do
#: (tests/runs/test_alike.py): a fifth of the values agree where two seeds end at one function.
ALIKE, NEARLY = 0.5, 1e-5
#: A metric tells nothing where fewer of its values differ, as of answers that are right or wrong.
DISTINCT = 0.5


def answer_alike(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], nearly: float = NEARLY
) -> bool:
    """Whether most values of two models on the same prompts, by metric, are nearly equal.

    Values that are not finite are near to none: two models may both have diverged. False where no
    metric can tell.
    """
    shares = [
        _share(a, second[name], nearly)
        for name, a in first.items()
        if name in second and max(_distinct(a), _distinct(second[name])) >= DISTINCT
    ]
    return bool(shares) and min(shares) >= ALIKE


def _distinct(values: np.ndarray) -> float:
    """How many different finite values there are, as a part of all."""
    return len(np.unique(values[np.isfinite(values)])) / values.size


def _share(a: np.ndarray, b: np.ndarray, nearly: float) -> float:
    """The part of the values that agree to within the part `nearly` of them."""
    if a.shape != b.shape:
        return 0.0
    finite = np.isfinite(a) & np.isfinite(b)
    size = np.maximum(np.abs(a), np.abs(b), where=finite, out=np.zeros_like(a))
    apart = np.subtract(a, b, where=finite, out=np.full_like(a, np.inf))
    return float((np.abs(apart) <= nearly * size).mean())


def seeds_alike(seeds: Sequence[int | None], values: Mapping[str, np.ndarray]) -> list[int]:
    """The seeds that answer like an earlier one; `values` are (seeds, …) by metric."""
    of_seed = [{name: array[i] for name, array in values.items()} for i in range(len(seeds))]
    return [
        seed or 0
        for i, seed in enumerate(seeds)
        if any(answer_alike(of_seed[i], earlier) for earlier in of_seed[:i])
    ]
