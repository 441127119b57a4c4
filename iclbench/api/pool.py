"""PooledTask: a task whose training prompts may be a fixed, finite pool."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, TypeVar

import torch
from pydantic import Field
from torch import Tensor

from .draws import Draws, TrainingRandom
from .prompts import Batch, map_tensors, to_device
from .random import torch_generator
from .task import Task, TaskConfig

#: Rows of a pool that are arranged at once: a task may compare every two positions of a prompt.
ROWS = 1024


class PooledConfig(TaskConfig):
    """The prompts that training sees."""

    pool: int | None = Field(
        None,
        ge=1,
        description="L, number of fixed training prompts, the same in every run; null: fresh "
        "prompts in every batch",
    )


ConfigT = TypeVar("ConfigT", bound=PooledConfig)


class PooledTask(Task[ConfigT]):
    """A task that trains on fresh prompts, or in epochs on a pool of them."""

    training_only = frozenset({"pool"})
    #: The name of the random stream of the pool.
    pool_stream: ClassVar[str] = "pool"

    def __init__(self, config: ConfigT) -> None:
        super().__init__(config)
        self._pools: dict[tuple[torch.device, torch.dtype], Batch] = {}

    def training_prompts(self, random: TrainingRandom, dtype: torch.dtype) -> Batch:
        """Fresh prompts, or those of the pool in shuffled passes.

        Every call starts a new pass. Passes are whole if the number of rows per replica (a
        recipe's chunk times its batch) is a multiple of L; otherwise the last one is cut short.
        """
        if self.config.pool is None:
            return super().training_prompts(random, dtype)
        return self.pooled(random.passes(self.config.pool), dtype)

    @cached_property
    def pool_draws(self) -> Draws:
        """The draws of the pool, made on the CPU from `task_seed`: the same on every device."""
        assert self.config.pool is not None
        generator = torch_generator("cpu", self.pool_stream, self.name, self.config.task_seed)
        return self.draw(TrainingRandom([generator], [self.config.pool], torch.float64))

    def pooled(self, chosen: Tensor, dtype: torch.dtype) -> Batch:
        """The chosen prompts of the pool (n,), on the device of `chosen`."""
        key = (chosen.device, dtype)
        if key not in self._pools:
            pool = self._arranged_pool(dtype)
            self._pools[key] = Batch(to_device(pool.prompt, key[0]), pool.target.to(key[0]))
        pool = self._pools[key]
        return Batch(map_tensors(lambda t: t[chosen], pool.prompt), pool.target[chosen])

    def _arranged_pool(self, dtype: torch.dtype) -> Batch:
        """All prompts of the pool and their targets, in `dtype`, on the CPU."""
        assert self.config.pool is not None
        prompts, targets = [], []
        for start in range(0, self.config.pool, ROWS):
            rows = {name: values[start : start + ROWS] for name, values in self.pool_draws.items()}
            part = self.round_and_arrange(rows, dtype)
            prompts.append(part.prompt)
            targets.append(part.target)
        target = torch.cat(targets)
        return Batch(
            map_tensors(lambda *fields: torch.cat(fields), *prompts),
            target.to(dtype) if target.is_floating_point() else target,
        )
