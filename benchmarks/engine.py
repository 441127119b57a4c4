"""iclbench's engine as the benchmark sees it: the training of a run, chunk by chunk."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from iclbench.api.config import parse_config
from iclbench.api.spec import RunSpec
from iclbench.runs.models import initial_module
from iclbench.runs.plan import Plan, resolve
from iclbench.training.gradients.compiled import Compiled
from iclbench.training.gradients.program import gradients_of
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.loop import Training
from iclbench.training.optimizers.base import Update
from iclbench.training.state import Replica

from .configurations import Configuration


def plan_of(configuration: Configuration, replicas: int = 1) -> Plan:
    """The run that is timed; it never ends."""
    request = {
        "model": configuration.model,
        "task": configuration.task,
        "model_args": {"width": 64, **configuration.model_args}
        if configuration.model in {"transformer", "baseconv"}
        else configuration.model_args,
        "task_args": configuration.task_args,
        "recipe": "smoke",
        "recipe_args": {
            "steps": 10**9,
            "batch": configuration.batch,
            "schedule": "constant",
            "chunk": configuration.chunk,
        },
        "seeds": replicas,
    }
    return resolve(parse_config(RunSpec, request, "benchmark"))


class EngineLoop:
    """The engine's own loop on R replicas."""

    def __init__(
        self, configuration: Configuration, replicas: int, device: str, **how: Any
    ) -> None:
        plan = plan_of(configuration, replicas)
        seeds = range(replicas)
        assert plan.recipe is not None
        self.replicas, self.chunk = replicas, plan.recipe.chunk
        self.training = Training(
            [initial_module(plan, seed) for seed in seeds],
            [Replica(seed, 1e-3) for seed in seeds],
            plan.task,
            plan.recipe,
            device=torch.device(device),
            dtype=torch.float32,
            **how,
        )
        self.name = f"iclbench, R = {replicas}"
        self.note = self.training.note

    def advance(self, steps: int) -> None:
        """Take steps, a whole number of chunks; losses and divergence are read once a chunk."""
        for _ in range(steps // self.chunk):
            self.training.advance()

    @contextlib.contextmanager
    def in_turn(self) -> Iterator[None]:
        """No threads and nothing compiled meanwhile: what counts operators sees all of them."""
        program = self.training.choice.program
        if isinstance(program, Threaded):
            patch = mock.patch.object(program, "map_parts", map)
        elif isinstance(program, Compiled):
            patch = mock.patch.object(program, "compiled", program.function)
        else:
            patch = contextlib.nullcontext()
        with patch:
            yield

    def overhead(self, steps: int) -> float:
        """The share of steps that is spent outside the data, model, loss, gradient and optimizer.

        On a CPU, where nothing goes on after a call has returned.
        """
        t = self.training
        inside = [
            (type(t.task), "sample_batches"),
            (type(t.replicas.template), "forward"),
            (type(t.task), "loss"),
            (torch.autograd, "grad"),
            (type(t.optimizer), "update"),
        ]
        watch = Stopwatch()
        with contextlib.ExitStack() as stack:
            for owner, name in inside:
                stack.enter_context(mock.patch.object(owner, name, watch.on(getattr(owner, name))))
            whole = Stopwatch()
            whole.on(self.advance)(steps)
        return 1 - watch.seconds / whole.seconds

    @property
    def stages(self) -> dict[str, Any]:
        """The stages of a step, each taking what the one before gave; data are a chunk's share."""
        t = self.training
        program: Any = t.choice.program
        threaded = isinstance(program, Threaded)
        map_parts = program.map_parts if threaded else map

        def draw(_: None) -> Any:
            return t.trial()

        def forward(batch: Any) -> list[tuple[Tensor, list[Tensor]]]:
            if threaded:
                parts = program.parts(batch)
                return list(map_parts(lambda part: program.loss_of(part, batch), parts))
            return [program.losses(rows, batch) for rows in program.groups]

        def backward(losses: list[tuple[Tensor, list[Tensor]]]) -> Tensor:
            rows = torch.cat(list(map_parts(lambda part: gradients_of(*part), losses)))
            return rows.view(t.replicas.count, t.choice.how.slices, -1).mean(dim=1)

        def optimizer(grad: Tensor) -> None:
            t.optimizer.update(Update(grad, t.rates, t.alive, t.step + 1))

        return {"data": draw, "forward": forward, "backward": backward, "optimizer": optimizer}


class Stopwatch:
    """Adds up the seconds within functions; they don't call each other."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def on(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            found = function(*args, **kwargs)
            self.seconds += time.perf_counter() - started
            return found

        return timed


def initial(configuration: Configuration) -> tuple[Any, nn.Module]:
    """The task, and the configuration's module as the engine trains it."""
    plan = plan_of(configuration)
    return plan.task, initial_module(plan, 0)
