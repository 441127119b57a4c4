"""From features to covariates: centred, scaled and projected by statistics of the training half."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

#: Rows held in float64 at once.
AT_ONCE = 2**15


class Covariates:
    """x = V(φ − μ)/s of every image, computed on first use.

    μ is the mean of the training half's features φ, and V its `dim` leading principal directions
    (the identity without `dim`). s makes the mean of ‖x‖² over the training half equal to the
    number of dimensions. The test half affects none of them. Without `normalize`, s = 1 and μ = 0.
    """

    def __init__(
        self, features: Tensor, training: Tensor, *, dim: int | None, normalize: bool
    ) -> None:
        self.features, self.training = features, training
        self.dim, self.normalize = dim, normalize
        self._map: tuple[Tensor, Tensor, float] | None = None
        self._tables: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def table(self, device: torch.device, dtype: torch.dtype) -> Tensor:
        """x of all images, (n, d), computed in float64 and rounded once."""
        if (device, dtype) not in self._tables:
            mean, directions, scale = self._mapping()
            parts = []
            for rows in _rows(self.features):
                scaled = (rows - mean) / scale
                parts.append((scaled @ directions if self.dim else scaled).to(dtype))
            self._tables[device, dtype] = torch.cat(parts).to(device)
        return self._tables[device, dtype]

    def _mapping(self) -> tuple[Tensor, Tensor, float]:
        """μ (d,), Vᵀ (d, dim) and s."""
        if self._map is None:
            chosen = self.features[self.training]
            width = chosen.shape[1]
            total = torch.zeros(width, dtype=torch.float64)
            for rows in _rows(chosen):
                total += rows.sum(dim=0)
            mean = total / len(chosen)
            squares = torch.zeros(width, width if self.dim else 1, dtype=torch.float64)
            for rows in _rows(chosen):
                centred = rows - mean
                squares += (
                    centred.mT @ centred if self.dim else centred.square().sum(dim=0)[:, None]
                )
            self._map = self._map_from(mean, squares / len(chosen))
        return self._map

    def _map_from(self, mean: Tensor, squares: Tensor) -> tuple[Tensor, Tensor, float]:
        directions = torch.zeros(0, dtype=torch.float64)
        spread = float(squares.sum()) / len(mean)
        if self.dim:
            values, vectors = torch.linalg.eigh(squares)
            directions = vectors[:, -self.dim :].flip(1)
            # LAPACK leaves a direction's sign undefined.
            largest = directions.abs().argmax(dim=0, keepdim=True)
            directions = directions * directions.gather(0, largest).sign()
            spread = float(values[-self.dim :].mean())
        if not self.normalize:
            return torch.zeros_like(mean), directions, 1.0
        return mean, directions, math.sqrt(spread) if spread > 0 else 1.0


def _rows(features: Tensor) -> Iterator[Tensor]:
    """The rows in float64, in parts."""
    for start in range(0, len(features), AT_ONCE):
        yield features[start : start + AT_ONCE].double()
