"""The training of a run, in chunks of steps, as the benchmark times it."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from iclbench import RunSpec
from iclbench.api.config import parse_config
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
    """The plan of the run to time, with practically endless steps."""
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
    """The engine's loop on R replicas."""

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

    @property
    def note(self) -> str | None:
        """Why the training takes no other program; a graph may fail in the first chunks."""
        return self.training.note

    def advance(self, steps: int) -> None:
        """Take a whole number of chunks; losses and divergence are read once per chunk."""
        for _ in range(steps // self.chunk):
            self.training.advance()

    @contextlib.contextmanager
    def in_turn(self) -> Iterator[None]:
        """Disable threads and compilation, so that an operator counter sees every operator."""
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
        """The share of time outside data, model with loss, gradient and optimizer.

        Only valid on a CPU with one thread, where calls are synchronous and in turn. Raises
        RuntimeError for a part that was never called: its time would count as the engine's.
        """
        t = self.training
        program = t.choice.program
        parts = {
            "data": (type(t.task), "training_batches"),
            "model and loss": (program, "loss_of" if isinstance(program, Threaded) else "losses"),
            "gradient": (torch.autograd, "grad"),
            "optimizer": (t.optimizer, "update"),
        }
        watches = {part: Stopwatch() for part in parts}
        whole = Stopwatch()
        with contextlib.ExitStack() as stack:
            for part, (owner, name) in parts.items():
                timed = watches[part].on(getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, timed))
            whole.on(self.advance)(steps)
        for part, watch in watches.items():
            if not watch.calls:
                raise RuntimeError(f"{self.name}: {part} was not timed; it is called differently")
        return 1 - sum(watch.seconds for watch in watches.values()) / whole.seconds

    @property
    def stages(self) -> dict[str, Any]:
        """The stages of a step; each takes the previous one's result. Data cost a chunk's share."""
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
    """The number of calls of a function, and the total seconds inside."""

    def __init__(self) -> None:
        self.calls, self.seconds = 0, 0.0

    def on(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose calls and time are counted."""

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            result = function(*args, **kwargs)
            self.seconds += time.perf_counter() - started
            self.calls += 1
            return result

        return timed


def initial(configuration: Configuration) -> tuple[Any, nn.Module]:
    """The task, and the module with the initial weights of seed 0."""
    plan = plan_of(configuration)
    return plan.task, initial_module(plan, 0)
