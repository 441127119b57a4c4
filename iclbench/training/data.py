"""The training data of all replicas, chunk after chunk; the next while one is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from ..api.prompts import Batch, map_tensors, stack
from ..api.random import torch_generator
from ..api.recipe import Recipe
from ..api.task import Task
from ..devices import one_thread
from .threads import Map


def draws_at_once(task: Task[Any]) -> bool:
    """Whether the task's `sample_replicas` knows of its `sample` and `sample_batches`.

    It does not where a subclass overrides one of these alone.
    """
    for owner in type(task).__mro__:
        if "sample_replicas" in vars(owner):
            return True
        if "sample" in vars(owner) or "sample_batches" in vars(owner):
            return False
    return False


class Data:
    """Chunks of training batches, every field (R, chunk, batch, …), from a generator a replica.

    What a chunk holds for a replica depends on its task and seed alone: not on the other replicas,
    nor on when it was drawn. At once it is the same but for rounding.
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
        self.at_once = self.ahead and all(map(draws_at_once, tasks))
        self._next: Batch | None = None
        self._before: list[Tensor] = []  # the generators' states before `_next`

    def draw(self, generators: Sequence[torch.Generator], batches: int) -> Batch:
        """That many batches of every replica from these generators."""
        return (self._draw_at_once if self.at_once else self._draw_each)(generators, batches)

    def disagreement(self) -> str | None:
        """None, or how what replicas draw at once differs from what each draws."""
        drawn, states = [], []
        for draw in (self._draw_each, self._draw_at_once):
            own = [torch_generator(self.device, "agreement", r) for r in range(len(self.tasks))]
            try:
                batch = draw(own, 1)
            except Exception as error:
                return f"{type(error).__name__} at once"
            drawn.append((*batch.prompt, batch.target))
            states.append([generator.get_state() for generator in own])
        if not all(map(torch.equal, *states)):
            return "other draws at once"
        same = all(
            a.shape == b.shape
            and a.dtype == b.dtype
            and torch.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)
            for a, b in zip(*drawn, strict=True)
        )
        return None if same else "other prompts at once"

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
            # As they lie in memory when they are stacked: compiled code is for one layout.
            prompt = map_tensors(Tensor.contiguous, found[0].prompt)
            return Batch(prompt, found[0].target.contiguous())
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
            try:
                self._next = self.draw(self.generators, self.recipe.chunk)
            except torch.OutOfMemoryError:
                self.restore(self._before)
                self.ahead = False  # two chunks do not fit

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
