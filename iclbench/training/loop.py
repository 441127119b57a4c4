"""The training loop: draws data, steps all replicas at once, freezes what diverges, checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..api.errors import UsageError
from ..api.prompts import Batch, map_tensors, stack
from ..api.random import derive_seed, torch_generator
from ..api.recipe import Recipe
from ..api.task import Task
from ..console import report
from ..devices import keep_freed_memory, one_thread
from .agreement import disagreement
from .checkpoints import Checkpoint
from .data import Data
from .engine import Engine, EngineName, batch_of, first_line, make_engine
from .grouping import cpu_group, cpu_slices, elements, fitting_group, measured_speedup
from .objective import Objective
from .optimizer import BatchOptimizer, Update
from .optimizers import Stacked, make_optimizer
from .replicas import Replicas, random_state, set_random_state
from .resumption import Resumption, checkpoint_of, restore
from .schedules import AdaptiveRate
from .threads import map_at_once

Observer = Callable[[int, list[float]], None]


#: Longest time between two calls of the observer.
OBSERVE_SECONDS = 10.0


class Window:
    """The losses since the last point of the curve."""

    def __init__(self, replicas: int) -> None:
        self.sums, self.count = [0.0] * replicas, 0
        self.latest: list[float] = self.sums

    def add(self, losses: Tensor) -> None:
        """Take up losses (steps, R)."""
        chunk = losses.sum(dim=0, dtype=torch.float64).tolist()
        self.sums = [a + b for a, b in zip(self.sums, chunk, strict=True)]
        self.count += len(losses)
        self.latest = [value / self.count for value in self.sums]

    def close(self) -> list[float]:
        """The mean of each replica, (R,); the next window is empty."""
        self.sums, self.count = [0.0] * len(self.sums), 0
        return self.latest


@dataclass(frozen=True)
class Replica:
    """What sets one replica apart: its run's seed, its learning rate, and its task's numbers."""

    seed: int
    learning_rate: float
    task: Task[Any] | None = None  # None: the training's; draws alone may differ from it


@dataclass
class Trained:
    """What a training leaves: a state dict a replica, and how it went.

    `curve` holds, for each of `curve_steps`, every replica's mean loss since the point before.
    """

    states: list[dict[str, Tensor]]
    steps: int
    curve_steps: list[int]
    curve: list[list[float]]
    diverged_at: list[int | None]
    replicas: int  # trained in one program; 1 where they were trained one after another
    seconds: float
    note: str | None
    engine: str = "eager"
    speedup: float | None = None  # of stacked gradients over one model's, timed at the start


class Training:
    """One training of several replicas of one model on one task."""

    def __init__(
        self,
        modules: list[nn.Module],
        replicas: list[Replica],
        task: Task[Any],
        recipe: Recipe,
        *,
        device: torch.device,
        dtype: torch.dtype,
        freeze: tuple[str, ...] = (),
        engine: EngineName = "auto",
    ) -> None:
        self.task, self.recipe, self.device, self.dtype = task, recipe, device, dtype
        if device.type == "cpu":
            keep_freed_memory()
        self.who = replicas
        self.replicas = Replicas(modules, device, freeze)
        self.replicas.factored_logits = task.signature.target == "token"
        self.optimizer = make_optimizer(self.replicas, recipe.optimizer, recipe.optimizer_args)
        tasks = [replica.task or task for replica in replicas]
        self.data = Data(tasks, [r.seed for r in replicas], recipe, device, dtype)
        self.rates = torch.tensor(
            [r.learning_rate for r in replicas], device=device, dtype=torch.float64
        ).to(dtype)
        self.alive = torch.ones(len(replicas), dtype=torch.bool, device=device)
        self.diverged_at: list[int | None] = [None] * len(replicas)
        self.curve_steps: list[int] = []
        self.curve: list[list[float]] = []
        self.window = Window(len(replicas))
        self.step = 0
        self.seconds = 0.0
        self.random_states: list[Tensor] | None = None
        self.note: str | None = None
        self.speedup: float | None = None
        self.mean_gradient = (
            torch.zeros_like(self.replicas.flat) if recipe.gradient_memory else None
        )
        self.adaptive: AdaptiveRate | None = None
        if recipe.schedule == "adaptive":
            self.adaptive = AdaptiveRate(recipe, len(replicas), device)
            # Of their own: what is measured draws nothing from the training data.
            self.measuring = [torch_generator(device, "gradient cosine", r.seed) for r in replicas]
        self._check_data()
        self._choose_program()
        self.engine, refusal = make_engine(self, engine)
        if refusal is not None:
            self._say(refusal)

    def _check_data(self) -> None:
        problem = self.data.disagreement() if self.data.at_once else None
        if problem is not None:
            self.data.at_once = False
            self._say(f"replicas' data are drawn one after another: {problem}")

    def _choose_program(self) -> None:
        """Stack the replicas if stacked and single results agree, else train them in turn."""
        sample = [
            task.sample(8, torch_generator(self.device, "agreement", r), self.device, self.dtype)
            for r, task in enumerate(self.data.tasks)
        ]  # fmt: skip
        batch = stack(sample)
        problem = None
        if self.replicas.draws(batch):
            problem = "it draws random numbers in its forward pass"
            if isinstance(self.optimizer, BatchOptimizer):
                name = self.recipe.optimizer
                raise UsageError(f"optimizer {name} needs a model that draws no random numbers")
            self.random_states = [self._random_start(r.seed) for r in self.who]
        elif self.replicas.stacked:
            problem = disagreement(self.replicas, batch, self.task.loss)
            if problem is not None and self.replicas.takes_replicas:
                self.replicas.takes_replicas = False
                self._say(f"the model's replicas are vmapped: {problem}")
                problem = disagreement(self.replicas, batch, self.task.loss)
        if problem is not None and self.replicas.stacked:
            self.replicas.stacked = False
            self._say(f"replicas are trained one after another: {problem}")
        if self.random_states is None:
            self._choose_group()

    def _choose_group(self) -> None:
        """How many replicas one program trains: what is fast on a CPU, what fits on a GPU."""
        replicas, loss = self.replicas, self.task.loss
        replicas.template.train()
        if self.device.type == "cpu":
            self.data.map = map_at_once(replicas.count)
            batch = _part(batch_of(self.trial(1), 0), 0, self.recipe.accumulate)
            each = elements(replicas, batch, loss)
            replicas.group = cpu_group(replicas, each) if replicas.stacked else 1
            if replicas.together == 1:
                replicas.slices = cpu_slices(replicas, batch, loss, each)
                # Other optimizers may compute as much as a gradient is, with all threads.
                if replicas.binds and isinstance(self.optimizer, Stacked):
                    replicas.map = map_at_once(replicas.count * replicas.slices)
        elif replicas.stacked:
            batch = batch_of(self.trial(self.recipe.chunk), 0)
            replicas.group = fitting_group(replicas, batch, loss)
            if replicas.group < replicas.count:
                self._say(f"{replicas.group} replicas fit in memory at once")
        if replicas.together > 1:
            self.speedup = measured_speedup(replicas, batch, loss)

    def trial(self, batches: int) -> Batch:
        """Batches for a trial, drawn from generators of its own."""
        streams = [torch_generator(self.device, "trial", r) for r in range(len(self.who))]
        return self.data.draw(streams, batches)

    def _say(self, what: str) -> None:
        self.note = what if self.note is None else f"{self.note}; {what}"

    def fall_back(self, engine: Engine, error: Exception) -> Engine:
        """Go on by `engine`, without a graph, and say why."""
        self.engine = engine
        self._say(f"no CUDA graph: {first_line(error)}")
        report(f"it goes on step by step: no CUDA graph: {first_line(error)}")
        return self.engine

    def _random_start(self, seed: int) -> Tensor:
        with torch.random.fork_rng(self._forked()):
            torch.manual_seed(derive_seed("forward pass", seed))
            return random_state(self.device)

    def _forked(self) -> list[torch.device]:
        return [self.device] if self.device.type == "cuda" else []

    def run(self, resumption: Resumption | None, observer: Observer) -> Trained:
        """Train to the recipe's last step, from the checkpoint where there is one.

        The observer is called at each point of the curve, and in between every few seconds.
        """
        keep = resumption or Resumption(Path(), every_seconds=math.inf)
        if resumption and keep.resume and keep.path.exists():
            restore(self, Checkpoint.load(keep.path), keep)
        self.replicas.template.train()
        started = time.perf_counter() - self.seconds
        saved = said = time.perf_counter()
        with torch.random.fork_rng(self._forked()):
            while self.step < self.recipe.steps and self.alive.any():
                self.window.add(self.advance())
                now = time.perf_counter()
                self.seconds = now - started
                if self._close_window() or now - said >= OBSERVE_SECONDS:
                    observer(self.step, self.window.latest)
                    said = now
                if now - saved >= keep.every_seconds:
                    checkpoint_of(self, keep.code).save(keep.path)
                    saved = now
        self.seconds = time.perf_counter() - started
        if resumption:
            checkpoint_of(self, keep.code).save(keep.path)
        return self._result()

    def _result(self) -> Trained:
        return Trained(
            states=[self.replicas.state(r) for r in range(self.replicas.count)],
            steps=self.step,
            curve_steps=self.curve_steps,
            curve=self.curve,
            diverged_at=self.diverged_at,
            replicas=self.replicas.together,
            engine=self.engine.name,
            speedup=self.speedup,
            seconds=self.seconds,
            note=self.note,
        )

    def _close_window(self) -> bool:
        """Add a point to the curve when it is due: about a hundred, and the last step's."""
        point = max(1, self.recipe.steps // 100)
        last = self.step == self.recipe.steps or not self.alive.any()
        if self.window.count < point and not last:
            return False
        self.curve_steps.append(self.step)
        self.curve.append(self.window.close())
        return True

    def advance(self) -> Tensor:
        """Draw one chunk of data and take its steps; returns the losses (steps, R)."""
        recipe = self.recipe
        with one_thread() if self.replicas.by_threads else nullcontext():
            # Not named here, so that it is gone before the next is drawn.
            steps = min(recipe.chunk, recipe.steps - self.step)
            chunk = self.engine.run(self.data.next(), steps)
        if self.step < recipe.steps:
            self.data.prepare()
        for r, row in enumerate(chunk.living.T.tolist()):
            if self.diverged_at[r] is None and not all(row):
                self.diverged_at[r] = self.step - len(row) + row.index(False)
        return chunk.losses

    def measure(self, batches: int) -> list[Tensor]:
        """Gradients (R, P) on that many fresh batches, at the present parameters."""
        drawn = self.data.draw(self.measuring, batches)
        return [self._gradients(batch_of(drawn, i))[1] for i in range(batches)]

    def take_step(self, batch: Batch, factor: float | Tensor, step: int | Tensor) -> Tensor:
        """One optimizer step of every living replica; returns the losses (R,).

        `factor` is the schedule's and `step` counts from 1; a graph has both on the device. All
        state is updated in place, and nothing waits for the device.
        """
        losses, grad = self._gradients(batch)
        norms = grad.norm(dim=1)
        self.alive &= (losses + norms).abs() < math.inf
        if self.recipe.clip is not None:
            grad = grad / ((norms + 1e-6) / self.recipe.clip).clamp(min=1.0).unsqueeze(1)
        if self.mean_gradient is not None:
            # It starts as the first gradient.
            share = 1 - self.recipe.gradient_memory if self.step else 1.0
            self.mean_gradient.lerp_(grad, share)
            grad = grad + self.recipe.gradient_weight * self.mean_gradient
        rate = self.rates * factor
        if self.adaptive is not None:
            rate = rate * self.adaptive.factor.to(rate)
        objective = Objective(self.replicas, batch, self.task.loss)
        self.optimizer.update(Update(grad, rate, self.alive, step, objective))
        return losses

    def _gradients(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The losses (R,) and gradients (R, P) of a batch, its parts one after another."""
        parts = self.recipe.accumulate
        reduced = self.recipe.autocast == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=reduced):
            losses, grad = self._part_gradients(_part(batch, 0, parts))
            for index in range(1, parts):
                more, further = self._part_gradients(_part(batch, index, parts))
                losses, grad = losses + more, grad.add_(further)
        return (losses, grad) if parts == 1 else (losses / parts, grad.div_(parts))

    def _part_gradients(self, batch: Batch) -> tuple[Tensor, Tensor]:
        if self.random_states is None:
            return self.replicas.gradients(batch, self.task.loss)
        # A module that draws random numbers gets a stream of its own for each replica.
        results = []
        for r in range(self.replicas.count):
            set_random_state(self.device, self.random_states[r])
            results.append(self.replicas.gradient_of(r, batch, self.task.loss))
            self.random_states[r] = random_state(self.device)
        return torch.stack([v for v, _ in results]), torch.stack([g for _, g in results])


def _part(batch: Batch, index: int, parts: int) -> Batch:
    """One of the equal parts of stacked batches, every field (R, batch / parts, …)."""
    size = batch.target.shape[1] // parts
    rows = slice(index * size, (index + 1) * size)
    return Batch(map_tensors(lambda t: t[:, rows], batch.prompt), batch.target[:, rows])
