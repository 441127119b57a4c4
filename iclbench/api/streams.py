"""Streams: random numbers for prompts of several replicas at once; tasks that are drawn so."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .prompts import Batch, with_lead
from .task import ConfigT, Task


class Streams:
    """Rows of random numbers, n from each of several generators, one's after another's.

    A generator gives what `torch.randn(n, …)` and the like would draw from it, so that its numbers
    do not depend on the others.
    """

    def __init__(
        self,
        n: int,
        generators: Sequence[torch.Generator],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._each, self.generators = n, generators
        self.device, self.dtype = device, dtype

    @property
    def rows(self) -> int:
        """How many prompts are asked for: n times the number of generators."""
        return self._each * len(self.generators)

    def of(self, dtype: torch.dtype) -> Streams:
        """The same generators for numbers of another dtype."""
        return Streams(self._each, self.generators, self.device, dtype)

    def normal(self, *shape: int) -> Tensor:
        """N(0, 1), (rows, *shape)."""
        return self._drawn(Tensor.normal_, shape, self.dtype)

    def uniform(self, *shape: int) -> Tensor:
        """On [0, 1), (rows, *shape)."""
        return self._drawn(Tensor.uniform_, shape, self.dtype)

    def integers(self, stop: int, *shape: int) -> Tensor:
        """From 0 up to but not including `stop`, (rows, *shape), int64."""

        def draw(rows: Tensor, *, generator: torch.Generator) -> Tensor:
            return rows.random_(0, stop, generator=generator)

        return self._drawn(draw, shape, torch.int64)

    def passes(self, count: int) -> Tensor:
        """Each generator's numbers below `count` in shuffled passes over all, (rows,), int64."""
        found = []
        for generator in self.generators:
            orders = [
                torch.randperm(count, generator=generator, device=self.device)
                for _ in range(-(-self._each // count))
            ]
            found.append(torch.cat(orders)[: self._each])
        return torch.cat(found)

    def _drawn(
        self, draw: Callable[..., Tensor], shape: tuple[int, ...], dtype: torch.dtype
    ) -> Tensor:
        # Into one tensor: on a GPU that is one launch a generator.
        all_rows = (len(self.generators), self._each, *shape)
        found = torch.empty(all_rows, dtype=dtype, device=self.device)
        for rows, generator in zip(found, self.generators, strict=True):
            draw(rows, generator=generator)
        return found.flatten(0, 1)


class DrawnTask(Task[ConfigT]):
    """A task whose training prompts are independent: each follows from its own row of the streams.

    They can then be computed for all replicas at once, which share nothing.
    """

    @abstractmethod
    def drawn(self, streams: Streams) -> Batch:
        """A training prompt for each row, in the streams' dtype."""

    def sample(
        self, n: int, generator: torch.Generator, device: torch.device, dtype: torch.dtype
    ) -> Batch:
        """n fresh prompts with their targets."""
        return self.drawn(Streams(n, [generator], device, dtype))

    def sample_replicas(
        self,
        batches: int,
        size: int,
        generators: Sequence[torch.Generator],
        device: torch.device,
        dtype: torch.dtype,
    ) -> Batch:
        """Training batches of all replicas, drawn in turn and computed at once."""
        found = self.drawn(Streams(batches * size, generators, device, dtype))
        return with_lead(found, len(generators), batches, size)
