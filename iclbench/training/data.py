"""The training data of all replicas, chunk after chunk; on a GPU the next one is drawn early."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from ..api.errors import is_out_of_memory
from ..api.prompts import Batch, map_tensors
from ..api.random import torch_generator
from ..api.recipe import Recipe
from ..api.task import Task
from .stages import StagedTasks
from .threads import Map, one_thread


class Data:
    """Chunks of training batches, every field (R, chunk, batch, …), with a generator per replica.

    A replica's data depend on its task, its seed, the recipe's batch, chunk and stages, the dtype,
    and on whether a CPU draws them or which model of GPU: with more multiprocessors, CUDA gives a
    large draw's numbers in another order. They do not depend on the other replicas, nor on when
    they are drawn.
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
        self.staged = StagedTasks(tasks, recipe.stages)
        self.generators = [torch_generator(device, "training data", seed) for seed in seeds]
        self.groups = groups_of(tasks, device)
        self.map: Map = map  # on a CPU, threads may draw the groups
        # A GPU draws the next chunk while it is busy with this one.
        self.ahead = device.type != "cpu"
        self._next: Batch | None = None
        self._before: list[Tensor] = []  # the generators' states before `_next`

    def draw(self, generators: Sequence[torch.Generator], batches: int, step: int = 0) -> Batch:
        """That many batches of every replica from these generators, one per replica.

        All are of the stage that `step` belongs to.
        """
        size, tasks = self.recipe.batch, self.staged.at(step)

        def draw(replicas: list[int]) -> Batch:
            theirs = [generators[r] for r in replicas]
            return tasks[replicas[0]].training_batches(batches, size, theirs, self.dtype)

        with nullcontext() if self.map is map else one_thread():
            parts = list(self.map(draw, self.groups))
        return _joined(parts, [r for replicas in self.groups for r in replicas])

    def next(self, step: int = 0) -> Batch:
        """The next chunk, whose first step is `step`."""
        chunk, self._next = self._next, None
        return self._chunk(step) if chunk is None else chunk

    def _chunk(self, step: int) -> Batch:
        """The batches of a chunk from `step` on, each of its stage."""
        parts = [
            self.draw(self.generators, count, first)
            for first, count in self.staged.parts(step, self.recipe.chunk)
        ]
        if len(parts) == 1:
            return parts[0]
        prompt = map_tensors(lambda *t: torch.cat(t, dim=1), *(part.prompt for part in parts))
        return Batch(prompt, torch.cat([part.target for part in parts], dim=1))

    def prepare(self, step: int = 0) -> None:
        """Draw the chunk from `step` on now if that saves time: before the host waits for this."""
        if self.ahead and self._next is None:
            self._before = [generator.get_state() for generator in self.generators]
            try:
                self._next = self._chunk(step)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                self.restore(self._before)
                self.ahead = False  # two chunks do not fit

    def states(self) -> list[Tensor]:
        """The generators' states after the chunks that `next` returned."""
        if self._next is not None:
            return self._before
        return [generator.get_state() for generator in self.generators]

    def restore(self, states: Sequence[Tensor]) -> None:
        """Continue from such states."""
        self._next = None
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state)


def groups_of(tasks: Sequence[Task[Any]], device: torch.device) -> list[list[int]]:
    """The replicas that are drawn together.

    A GPU draws all replicas of a task by the same operators. A CPU draws each alone: operators
    vectorize more rows differently, which would change the last bits.
    """
    if device.type == "cpu":
        return [[replica] for replica in range(len(tasks))]
    replicas_of: dict[int, list[int]] = {}
    for replica, task in enumerate(tasks):
        replicas_of.setdefault(id(task), []).append(replica)
    return list(replicas_of.values())


def _joined(parts: list[Batch], replicas: list[int]) -> Batch:
    """All replicas in order, contiguous: compiled code is for one memory layout.

    `replicas` are those of the parts, one after another.
    """
    # The inverse permutation: where each replica's rows are among the parts. It is not made where
    # it is not needed, since a GPU would be waited for.
    in_order = replicas == sorted(replicas)
    device = parts[0].target.device
    positions = None if in_order else torch.tensor(replicas, device=device).argsort()

    def join(*fields: Tensor) -> Tensor:
        joined = torch.cat(fields) if len(fields) > 1 else fields[0].contiguous()
        return joined if positions is None else joined[positions]

    prompt = map_tensors(join, *(part.prompt for part in parts))
    return Batch(prompt, join(*(part.target for part in parts)))
