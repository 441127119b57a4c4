"""The limits of errors: nothing counts as better than correct rounding, or as worse than lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..api.prompts import Batch, real_dtype
from ..api.task import Task

#: A prediction counts as at most this many root mean squares from its target.
LOST = 1e3


@dataclass(frozen=True)
class Limits:
    """Per error of a task and prompt of a batch, (B,) or (B, n): `least`, and `lost`.

    `least` is the error of correct rounding, in the run's dtype: half a unit in the last place of
    the target, or that of a number of the targets' root mean square where this is larger. A smaller
    error counts as that. An error that is larger than `lost`, or not finite, counts as `lost`: an
    answer that overflows must not look better than one that nearly does. Of a set of more than
    16,384 prompts, each 16,384 have a root mean square of their own.
    """

    least: Mapping[str, Tensor]
    lost: Mapping[str, Tensor]

    @classmethod
    def of(cls, task: Task[Any], batch: Batch) -> Limits:
        """The limits of a task's errors on an evaluation batch."""
        eps = torch.finfo(real_dtype(batch.prompt)).eps

        def half_unit(values: Tensor) -> Tensor:
            return torch.maximum(_half_unit(values.abs(), eps), _rounding(values, eps))

        def far(values: Tensor) -> Tensor:
            return LOST * _root_mean_square(values)

        return cls(task.errors_at(batch, half_unit), task.errors_at(batch, far))

    def apply(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The same values, with errors within the limits."""
        limited = dict(values)
        for name, least in self.least.items():
            if name in values:
                # An expensive metric may be measured on the first prompts only.
                count = len(values[name])
                lost = self.lost[name][:count]
                lost = lost.where(lost > 0, torch.inf)  # targets of zero have no scale
                known = torch.where(values[name].isnan(), lost, values[name])
                limited[name] = known.minimum(lost).maximum(least[:count])
        return limited


def _root_mean_square(values: Tensor) -> Tensor:
    """One number for all values, which are not padding (NaN), in the shape of `values`."""
    return values.square().nanmean().sqrt().expand_as(values)


def _rounding(values: Tensor, eps: float) -> Tensor:
    """Half a unit in the last place of numbers of the values' root mean square.

    Half a unit is ε/4 to ε/2 of a number, by where it lies between powers of 2. This takes the
    geometric mean of both, so that no floor jumps by 2 where other prompts move the root mean
    square beyond a power of 2.
    """
    return _root_mean_square(values) * (eps / 8**0.5)


def _half_unit(values: Tensor, eps: float) -> Tensor:
    """Half a unit in the last place of positive float64 values, for a dtype with that epsilon."""
    exponents = np.frexp(values.numpy())[1]
    return torch.from_numpy(np.where(values.numpy() > 0, np.ldexp(eps / 4.0, exponents), 0.0))
