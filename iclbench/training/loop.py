"""The training loop: draw, gradients, clip, update, validate, observe, checkpoint.

`Training.run` is the loop over chunks of steps, `advance` draws a chunk and takes its steps, and
`update` is one step: gradients, clip, schedule, optimizer. Everything below them is set-up.

All replicas take a step at once. A replica whose loss or gradient is not finite is frozen at its
last parameters, and the others go on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..api.capabilities import TrainingContext
from ..api.errors import Interrupted, is_out_of_memory
from ..api.prompts import Batch, map_tensors
from ..api.random import torch_generator
from ..api.recipe import Recipe
from ..api.task import Task
from ..devices import environment, free_memory, keep_freed_memory
from ..nn.predictions import averaged
from ..precision import denormals_as_zero
from .clock import Clock
from .cuda_graph import GraphStep, TakeStep, refusal
from .gradients.choice import Choice, Chooser, EngineName
from .gradients.program import GradientProgram, prompts_of
from .gradients.wrappers import Accumulated, Autocast
from .interruption import deferred
from .objective import Objective
from .optimizers.base import BatchOptimizer, Stacked, Update
from .platforms import platform_of, with_moves
from .random_streams import draws_random_numbers, first_states, forked_generators
from .resumption import Resumption
from .schedules import learning_rate_factor
from .state import Replica, TrainingState
from .threads import map_at_once

#: Called with the number of completed steps and each replica's mean loss since the last point.
Observer = Callable[[int, list[float]], None]

#: The observer is called at the first chunk that ends this long after the last call, or earlier.
OBSERVE_SECONDS = 10.0


@dataclass
class Trained:
    """What a training leaves: a state dict per replica, and how it went.

    `curve` holds, for each of `curve_steps`, every replica's mean loss since the point before;
    `clock` has the time of the steps, without that of evaluating and of writing checkpoints.
    """

    states: list[dict[str, Tensor]]
    steps: int
    curve_steps: list[int]
    curve: list[list[float]]
    diverged_at: list[int | None]
    replicas: int  # trained as one program; 1 where they were trained one after another
    clock: Clock
    note: str | None
    engine: str
    speedup: float | None = None  # of a gradient in its group over one model's, timed once


class Training(TrainingState):
    """One training of several replicas of one model on one task."""

    def __init__(
        self,
        modules: list[nn.Module],
        members: list[Replica],
        task: Task[Any],
        recipe: Recipe,
        *,
        device: torch.device,
        dtype: torch.dtype,
        freeze: tuple[str, ...] = (),
        engine: EngineName = "auto",
    ) -> None:
        """Prepare everything up to the first step; raises UsageError."""
        super().__init__(modules, members, task, recipe, device=device, dtype=dtype, freeze=freeze)
        self.notes: list[str] = []
        self.least_steps = 0  # are taken even where every replica diverges
        self.loss = averaged(task.loss)
        if device.type == "cpu":
            keep_freed_memory()
            self.data.map = map_at_once(len(members))
        self.choice = self._choose(engine)
        if device.type == "cuda":
            free_memory()  # of the comparison: the graph's stream can't use its cached blocks
        self.program = self._wrapped(self.choice.program)
        group_size = self.choice.how.group_size
        self.platform = platform_of(environment(device), self.program.name, group_size)
        self.take_step: TakeStep = self._step
        refused, wanted = refusal(self), engine in {"auto", "graph", "compiled"}
        if wanted and refused is None:
            self.take_step = GraphStep(self.update, self)
        elif engine == "graph" or (wanted and device.type == "cuda"):
            self.notes.append(f"no CUDA graph: {refused}")

    def run(self, resumption: Resumption | None, observer: Observer) -> Trained:
        """Train to the recipe's last step, from the checkpoint where there is one.

        The observer is called at each point of the curve, and every few seconds in between. SIGINT
        and SIGTERM raise Interrupted after a chunk, with a checkpoint of it.
        """
        if resumption:
            resumption.restore(self)
        saved = observed = time.perf_counter()
        with forked_generators(self.device), deferred() as signal_received:
            while not self.ended:
                with self.clock.running():
                    losses = self.advance()
                    closed = self.curve.add(losses, self.step, last=self.ended)
                if self.validation is not None:
                    self.validation.after(self.step, self.clock, self.replicas)
                now = time.perf_counter()
                if closed or now - observed >= OBSERVE_SECONDS:
                    observer(self.step, self.curve.latest)
                    observed = now
                if (number := signal_received()) is not None:
                    raise self._interrupted(number, resumption)
                if resumption and now - saved >= resumption.every_seconds:
                    resumption.save(self)
                    # Not `now`: after a slow save, the next chunk would be due for one again.
                    saved = time.perf_counter()
            if resumption:
                resumption.save(self)
            if (number := signal_received()) is not None:
                raise self._interrupted(number, resumption)
        return self._result()

    @property
    def ended(self) -> bool:
        """Whether the last step was taken, or every replica has diverged."""
        if self.step < self.least_steps or self.alive.any():
            return self.step >= self.recipe.steps
        return True

    def _interrupted(self, number: int, resumption: Resumption | None) -> Interrupted:
        """What a signal raises, once there is a checkpoint if one can be written."""
        if resumption is not None and resumption.save(self):
            state = "saved"
        elif resumption is not None and resumption.path.exists():
            state = "stopped, with the last checkpoint kept,"
        else:
            state = "stopped without a checkpoint"
        return Interrupted(number, f"{state} at step {self.step} of {self.recipe.steps}")

    def advance(self) -> Tensor:
        """Draw one chunk of data and take its steps; returns the losses (steps, R)."""
        count = min(self.recipe.chunk, self.recipe.steps - self.step)
        step_losses = []
        with self.choice.how.torch_threads(), denormals_as_zero():
            chunk = self.data.next(self.step)
            for index in range(count):
                step_losses.append(self.take_step(chunk, index, self.step))
                self.step += 1
                if self.adaptive is not None:
                    self.adaptive.advance(self.step, self.measure)
            del chunk  # so that its memory is free before the next is drawn
            losses = torch.stack(step_losses)
        if self.step < self.recipe.steps:
            self.data.prepare(self.step)
        return losses

    def _step(self, chunk: Batch, index: int, step: int) -> Tensor:
        """Take a step operator by operator; `GraphStep` takes the same step as one CUDA graph."""
        factor = learning_rate_factor(self.recipe, step)
        return self.update(batch_of(chunk, index), factor, step + 1)

    def update(self, batch: Batch, factor: float | Tensor, step: int | Tensor) -> Tensor:
        """Take one optimizer step of every living replica; returns the losses (R,).

        `factor` is the schedule's and `step` counts from 1; a CUDA graph has both on the device.
        """
        losses, gradients = self.program(batch)  # forward and backward
        # Freeze replicas whose loss or gradient is not finite, without waiting for the device.
        norms = gradients.norm(dim=1)
        self.alive &= (losses + norms).abs() < math.inf
        self.steps_alive += self.alive
        # As torch's clip_grad_norm_ with its 1e-6, for each replica separately.
        if self.recipe.clip is not None:
            gradients = gradients / ((norms + 1e-6) / self.recipe.clip).clamp(min=1.0).unsqueeze(1)
        if self.mean_gradient is not None:
            # The running mean starts as the first gradient.
            share = 1 - self.recipe.gradient_memory if self.step else 1.0
            self.mean_gradient.lerp_(gradients, share)
            gradients = gradients + self.recipe.gradient_weight * self.mean_gradient
        rates = self.rates * factor  # one per replica, times the schedule's factor
        if self.adaptive is not None:
            rates = rates * self.adaptive.factor.to(rates)
        objective = Objective(self.replicas, batch, self.loss, self.choice.how.slices)
        self.optimizer.update(Update(gradients, rates, self.alive, step, objective))
        return losses

    def measure(self, batches: int) -> Iterator[Tensor]:
        """Yield gradients (R, P) on that many fresh batches, at the current parameters.

        Everything that forward passes change, such as buffers and the random states of dropout, is
        put back after the last one.
        """
        drawn = self.data.draw(self.measuring, batches, self.step)
        before = {name: values.clone() for name, values in self.replicas.state().items()}
        for index in range(batches):
            yield self.program(batch_of(drawn, index))[1].clone()
        self.replicas.load_state(before)

    def trial(self, batches: int = 1) -> Batch:
        """Return the batch of a trial, from a chunk of `batches` drawn from separate streams."""
        streams = [torch_generator(self.device, "trial", r) for r in range(len(self.members))]
        return batch_of(self.data.draw(streams, batches), 0)

    @property
    def note(self) -> str | None:
        """Why a faster or the requested program is not used, and what a resumption changed."""
        failure = self.take_step.failure if isinstance(self.take_step, GraphStep) else None
        notes = [*self.notes, failure] if failure else self.notes
        return with_moves("; ".join(notes), self.moved)

    @property
    def engine(self) -> str:
        """How steps were taken: the program's name, and whether a CUDA graph was captured."""
        by_graph = isinstance(self.take_step, GraphStep) and self.take_step.graph is not None
        return f"{self.program.name} graph" if by_graph else self.program.name

    def _choose(self, engine: EngineName) -> Choice:
        recipe = self.recipe
        batch, *_kept = self._trials()
        part_size = recipe.batch // recipe.accumulate
        part = prompts_of(batch, 0, part_size)
        draws = draws_random_numbers(self.replicas, prompts_of(part, 0, 8))
        if isinstance(self.optimizer, BatchOptimizer):
            self.optimizer.require_suited(Objective(self.replicas, part, self.loss), draws=draws)
        if draws:
            seeds = [member.seed for member in self.members]
            self.replicas.random_states = first_states(seeds, self.device)
        context = TrainingContext(
            device=self.device,
            dtype=self.dtype,
            batch_size=part_size,
            autocast=torch.bfloat16 if recipe.autocast == "bfloat16" else None,
            factored_logits=self.task.signature.target == "token",
        )
        cheap_update = isinstance(self.optimizer, Stacked) and self.optimizer.elementwise
        chooser = Chooser(self.replicas, self.loss, part, context, cheap_update)
        choice = chooser.choose(engine)
        self.notes += choice.reasons
        group_size = choice.how.group_size
        if self.device.type != "cpu" and 1 < group_size < self.replicas.count:
            self.notes.append(f"only {group_size} replicas fit in memory at once")
        return choice

    def _trials(self) -> list[Batch]:
        """A batch to try programs on, and on a GPU further chunks, as many as training holds."""
        if self.device.type == "cpu":
            return [self.trial()]
        chunk = self.recipe.chunk
        try:
            # The graph's, the current or the next one, and about as much while one is drawn.
            return [self.trial(chunk) for _ in range(3)]
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            self.data.ahead = False
        free_memory()
        return [self.trial(chunk) for _ in range(2)]

    def _wrapped(self, program: GradientProgram) -> GradientProgram:
        if self.recipe.accumulate > 1:
            program = Accumulated(program, self.recipe.accumulate)
        if self.recipe.autocast == "bfloat16":
            program = Autocast(program, self.device, torch.bfloat16)
        return program

    def _result(self) -> Trained:
        return Trained(
            states=[self.replicas.state_dict(r) for r in range(self.replicas.count)],
            steps=self.step,
            curve_steps=self.curve.steps,
            curve=self.curve.losses,
            diverged_at=self.diverged_at,
            replicas=self.choice.how.group_size,
            engine=self.engine,
            speedup=self.choice.speedup,
            clock=self.clock,
            note=self.note,
        )


def batch_of(chunk: Batch, index: int) -> Batch:
    """Return one of a chunk's batches, each field (R, batch, …)."""
    return Batch(map_tensors(lambda t: t[:, index], chunk.prompt), chunk.target[:, index])
