"""The training data of all replicas, chunk after chunk; the next while one is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from ..devices import one_thread
from ..prompts import Batch, map_tensors, stack
from ..randomness import torch_generator
from ..recipes import Recipe
from ..tasks import Task
from .threads import Map


class Data:
    """Chunks of training batches, every field (R, chunk, batch, …), from a generator a replica.

    What a chunk holds for a replica depends on its seed alone: not on the other replicas, nor on
    when or by what it was drawn.
    """

    def __init__(
        self,
        tasks: Sequence[Task[Any]],
        seeds: Sequence[int],
        recipe: Recipe,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.tasks, self.recipe, self.device, self.dtype = tasks, recipe, device, dtype
        self.generators = [torch_generator(device, "training data", seed) for seed in seeds]
        self.map: Map = map  # by what replicas' data are drawn, where that is one by one
        # A GPU is given few operators, and the next chunk's while it is busy with this one's.
        self.ahead = device.type != "cpu"
        self.at_once = self.ahead and self.same_at_once()
        self._next: Batch | None = None
        self._before: list[Tensor] = []  # the generators' states before `_next`

    def draw(self, generators: Sequence[torch.Generator], batches: int) -> Batch:
        """That many batches of every replica from these generators."""
        return (self._draw_at_once if self.at_once else self._draw_each)(generators, batches)

    def same_at_once(self) -> bool:
        """Whether replicas get what each would draw, but for rounding, when they draw at once.

        It is not where a task overrides one of the two alone.
        """
        how = self._draw_at_once, self._draw_each
        drawn = [
            draw([torch_generator(self.device, "agreement", r) for r in range(len(self.tasks))], 1)
            for draw in how
        ]
        fields = zip(*((*batch.prompt, batch.target) for batch in drawn), strict=True)
        return all(
            a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)
            for a, b in fields
        )

    def _draw_each(self, generators: Sequence[torch.Generator], batches: int) -> Batch:
        def of(replica: tuple[Task[Any], torch.Generator]) -> Batch:
            task, generator = replica
            return task.sample_batches(
                batches, self.recipe.batch, generator, self.device, self.dtype
            )

        with nullcontext() if self.map is map else one_thread():
            return stack(list(self.map(of, zip(self.tasks, generators, strict=True))))

    def _draw_at_once(self, generators: Sequence[torch.Generator], batches: int) -> Batch:
        """The same by as few operators as there are tasks."""
        rows: dict[int, list[int]] = {}
        for row, task in enumerate(self.tasks):
            rows.setdefault(id(task), []).append(row)
        found = [
            self.tasks[own[0]].sample_replicas(
                batches, self.recipe.batch, [generators[r] for r in own], self.device, self.dtype
            )
            for own in rows.values()
        ]
        if len(found) == 1:
            return found[0]
        order = torch.tensor([r for own in rows.values() for r in own], device=self.device)
        place = order.argsort()
        prompts = [batch.prompt for batch in found]
        joined = map_tensors(lambda *fields: torch.cat(fields)[place], *prompts)
        return Batch(joined, torch.cat([batch.target for batch in found])[place])

    def next(self) -> Batch:
        """The next chunk."""
        taken, self._next = self._next, None
        return self.draw(self.generators, self.recipe.chunk) if taken is None else taken

    def prepare(self) -> None:
        """Draw the next chunk now, if that is of use: before the host waits for this one."""
        if self.ahead and self._next is None:
            self._before = [generator.get_state() for generator in self.generators]
            self._next = self.draw(self.generators, self.recipe.chunk)

    def states(self) -> list[Tensor]:
        """The generators' states after the chunks that `next` gave."""
        if self._next is not None:
            return self._before
        return [generator.get_state() for generator in self.generators]

    def restore(self, states: Sequence[Tensor]) -> None:
        """Continue from such states."""
        self._next = None
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state)
