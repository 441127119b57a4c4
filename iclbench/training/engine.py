"""How the steps of a chunk are taken: one by one, compiled, each as one CUDA graph, or both.

All engines call the training's one step, so that they differ in rounding alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from ..api.errors import unknown
from ..api.prompts import Batch, map_tensors
from .optimizers import Stacked
from .schedules import learning_rate_factor

if TYPE_CHECKING:
    from .loop import Training

#: `auto` is a graph where the device and the recipe allow one, and eager elsewhere; what is
#: compiled is captured as a graph too where it can be.
EngineName = Literal["auto", "eager", "compiled", "graph"]

#: Largest relative difference of compiled and eager losses and gradients at the start.
AGREEMENT = 1e-4


class Chunk(NamedTuple):
    """What the steps of a chunk leave: losses (steps, R), and who was alive after each, the same.

    Both are on the device; the host reads them once a chunk.
    """

    losses: Tensor
    living: Tensor


class Engine(ABC):
    """Takes the steps of a chunk."""

    name: str

    def __init__(self, training: Training) -> None:
        self.training = training

    @abstractmethod
    def run(self, drawn: Batch, count: int) -> Chunk:
        """Take `count` steps on the drawn batches, every field (R, chunk, batch, …)."""


class Eager(Engine):
    """Operator by operator; correct for every module."""

    name = "eager"

    def run(self, drawn: Batch, count: int) -> Chunk:
        """See `Engine.run`."""
        t = self.training
        losses, living = [], []
        for offset in range(count):
            factor = learning_rate_factor(t.recipe, t.step)
            losses.append(t.take_step(batch_of(drawn, offset), factor, t.step + 1))
            living.append(t.alive.clone())
            t.step += 1
            if t.adaptive is not None:
                t.adaptive.advance(t.step, t.measure)
        return Chunk(torch.stack(losses), torch.stack(living))


class Compiled(Eager):
    """The forward and backward pass by torch.compile, the rest as it is."""

    name = "compiled"

    def __init__(self, training: Training) -> None:
        """Compile, and compare with the eager pass; raises RuntimeError where they differ."""
        super().__init__(training)
        replicas = training.replicas
        batch = batch_of(training.trial(1), 0)
        expected = replicas.copy().gradients(batch, training.task.loss)
        # There is one compiled program: threads divide its operators.
        by_threads, replicas.map = replicas.map, map
        replicas.compile()
        try:
            found = replicas.copy().gradients(batch, training.task.loss)
            for a, b in zip(found, expected, strict=True):
                if not (a - b).norm() <= AGREEMENT * b.norm():
                    raise RuntimeError("compiled and eager results differ")
        except Exception:
            replicas.compiled, replicas.map = None, by_threads
            raise


class Graph(Engine):
    """Every step one launch of a CUDA graph: forward, backward, clip, update, and what is noted.

    The graph reads its batch, learning-rate factor and step from buffers of the device, filled once
    a chunk, and writes losses into a ring there: nothing waits within a chunk. The first chunk's
    steps are taken without being captured, which warms up what capturing needs; all state is
    updated in place. Where capturing fails, `captured` goes on.
    """

    def __init__(self, captured: Engine) -> None:
        super().__init__(captured.training)
        self.captured = captured
        self.name = "graph" if captured.name == "eager" else f"{captured.name} graph"
        self.graph: torch.cuda.CUDAGraph | None = None
        self.chunk: Batch | None = None

    def run(self, drawn: Batch, count: int) -> Chunk:
        """See `Engine.run`."""
        warm = self.chunk is not None
        if warm and self.graph is None:
            try:
                self.graph = self._captured()
            except Exception as error:
                # Capturing runs nothing, so the training stands where it stood.
                return self.training.fall_back(self.captured, error).run(drawn, count)
        self._fill(drawn)
        if self.graph is None:
            self._warm_up(count)
        else:
            for _ in range(count):
                self.graph.replay()
            self.training.step += count
        return Chunk(self.losses[:count].clone(), self.living[:count].clone())

    def _fill(self, drawn: Batch) -> None:
        """Put a chunk's batches, factors and first step where the captured step reads them."""
        t = self.training
        if self.chunk is None:
            self._make_buffers(drawn)
        assert self.chunk is not None
        for own, new in zip(
            (*self.chunk.prompt, self.chunk.target), (*drawn.prompt, drawn.target), strict=True
        ):
            own.copy_(new)
        factors = [learning_rate_factor(t.recipe, t.step + i) for i in range(t.recipe.chunk)]
        self.factors.copy_(torch.tensor(factors, dtype=torch.float64))
        self.index.zero_()
        self.step.fill_(t.step + 1)

    def _make_buffers(self, drawn: Batch) -> None:
        t = self.training
        self.chunk = Batch(
            map_tensors(torch.zeros_like, drawn.prompt), torch.zeros_like(drawn.target)
        )
        replicas, device = t.replicas.count, t.device
        self.factors = torch.ones(t.recipe.chunk, dtype=torch.float64, device=device)
        self.index = torch.zeros(1, dtype=torch.int64, device=device)
        self.step = torch.ones((), dtype=torch.float64, device=device)
        self.losses = torch.zeros(t.recipe.chunk, replicas, dtype=t.dtype, device=device)
        self.living = torch.zeros(t.recipe.chunk, replicas, dtype=torch.bool, device=device)

    def _warm_up(self, count: int) -> None:
        """Take the steps that are captured later, so that nothing is compiled or chosen then."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._take(count)
        torch.cuda.current_stream().wait_stream(stream)

    def _take(self, count: int) -> None:
        for _ in range(count):
            self._one_step()
            self.training.step += 1

    def _captured(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._one_step()
        return graph

    def _one_step(self) -> None:
        """What is captured: nothing in it is read by the host, or depends on what it would read."""
        t = self.training
        assert self.chunk is not None
        prompt = map_tensors(self._current, self.chunk.prompt)
        batch = Batch(prompt, self._current(self.chunk.target))
        losses = t.take_step(batch, self.factors.index_select(0, self.index)[0], self.step)
        self.losses.index_copy_(0, self.index, losses.unsqueeze(0).to(self.losses))
        self.living.index_copy_(0, self.index, t.alive.unsqueeze(0))
        self.index.add_(1)
        self.step.add_(1)

    def _current(self, field: Tensor) -> Tensor:
        return field.index_select(1, self.index).squeeze(1)


def make_engine(training: Training, name: EngineName) -> tuple[Engine, str | None]:
    """The engine, and why it is not the one that was asked for; raises UsageError for no name."""
    if name not in get_args(EngineName):
        raise unknown("engine", name, get_args(EngineName))
    refusal = _refusal(training)
    if name == "compiled":
        try:
            compiled = Compiled(training)
        except Exception as error:
            return Eager(training), f"not compiled: {first_line(error)}"
        return (compiled if refusal else Graph(compiled)), None
    if name == "eager" or (name == "auto" and refusal is not None):
        return Eager(training), None
    if refusal is not None:
        return Eager(training), f"no CUDA graph: {refusal}"
    return Graph(Eager(training)), None


def _refusal(training: Training) -> str | None:
    """Why a step can't be captured, or None."""
    if training.device.type != "cuda":
        return "it needs a CUDA device"
    if training.random_states is not None:
        return "the model draws random numbers in its forward pass"
    if training.adaptive is not None:
        return "the adaptive schedule measures gradients between steps"
    if not isinstance(training.optimizer, Stacked):
        return "the optimizer decides on the host"
    return None


def batch_of(drawn: Batch, index: int) -> Batch:
    """One of the batches that were drawn, every field (R, batch, …)."""
    return Batch(map_tensors(lambda t: t[:, index], drawn.prompt), drawn.target[:, index])


def first_line(error: BaseException) -> str:
    """An error's type and the start of its message."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:160]}" if text else type(error).__name__
