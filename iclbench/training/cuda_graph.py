"""Each training step as one launch of a CUDA graph: forward, backward, clip and update."""

from __future__ import annotations

import functools
import gc
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from ..api.errors import first_line
from ..api.prompts import Batch, map_tensors
from ..console import report
from .optimizers.base import Stacked
from .schedules import learning_rate_factor
from .state import TrainingState

#: Takes one step: of a chunk of batches, each field (R, chunk, batch, …), the batch at an index,
#: with the number of completed steps; returns the losses (R,).
TakeStep = Callable[[Batch, int, int], Tensor]

#: Clips and updates on one batch, by a learning-rate factor and a step counted from 1; returns the
#: losses (R,). All state changes in place, and nothing waits for the device.
UpdateStep = Callable[[Batch, Tensor, Tensor], Tensor]


class GraphStep:
    """A `TakeStep` by a graph that is captured once and replayed for every step.

    The graph reads its batch, learning-rate factor and step from buffers on the device, which are
    filled once per chunk, and writes losses into a buffer there: nothing waits within a chunk. The
    steps of the first chunk, two at least, are taken without a graph, which warms up what capturing
    needs; the last of them is watched. Where capturing fails, or a step waits for the device,
    `failure` says why, and all steps are taken operator by operator.
    """

    def __init__(self, update: UpdateStep, state: TrainingState) -> None:
        self.update, self.recipe = update, state.recipe
        self.replicas, self.device, self.dtype = len(state.members), state.device, state.dtype
        self.graph: torch.cuda.CUDAGraph | None = None
        self.chunk: Batch | None = None
        self.failure: str | None = None
        self.is_warm = self.was_watched = False

    def __call__(self, chunk: Batch, index: int, step: int) -> Tensor:
        """Take a step; the losses are valid until the next chunk."""
        if index == 0:
            if self.was_watched and self.graph is None and self.failure is None:
                self._capture()
            self._fill(chunk, step)
        if self.graph is not None:
            self.graph.replay()
        elif self.failure is not None:
            self._one_step()
        elif self.is_warm and index == self.recipe.chunk - 1:
            self._warm_up_watched()
            self.was_watched = True
        else:
            self._warm_up()
            self.is_warm = True
        return self.losses[index]

    def _capture(self) -> None:
        try:
            # Capture records operators without running them, so state is unchanged.
            self.graph = self._captured()
        except Exception as error:
            self._refuse(first_line(error))

    def _refuse(self, reason: str) -> None:
        self.failure = f"no CUDA graph: {reason}"
        report(f"steps are taken operator by operator: {self.failure}")

    def _fill(self, chunk: Batch, step: int) -> None:
        """Put a chunk's batches, factors and first step where the captured step reads them."""
        if self.chunk is None:
            self._make_buffers(chunk)
        assert self.chunk is not None
        for buffer, values in zip(
            (*self.chunk.prompt, self.chunk.target), (*chunk.prompt, chunk.target), strict=True
        ):
            buffer.copy_(values)
        # The host computes a chunk's factors at once: the graph can't call Python.
        factors = [learning_rate_factor(self.recipe, step + i) for i in range(self.recipe.chunk)]
        # From pinned memory, so that the host does not wait for the steps before.
        pinned = torch.tensor(factors, dtype=torch.float64, pin_memory=self.device.type == "cuda")
        self.factors.copy_(pinned, non_blocking=True)
        self.index.zero_()
        # Adam's bias correction counts from 1.
        self.step.fill_(step + 1)

    def _make_buffers(self, chunk: Batch) -> None:
        prompt = map_tensors(torch.zeros_like, chunk.prompt)
        self.chunk = Batch(prompt, torch.zeros_like(chunk.target))
        steps, device = self.recipe.chunk, self.device
        self.factors = torch.ones(steps, dtype=torch.float64, device=device)
        self.index = torch.zeros(1, dtype=torch.int64, device=device)
        self.step = torch.ones((), dtype=torch.float64, device=device)
        self.losses = torch.zeros(steps, self.replicas, dtype=self.dtype, device=device)

    def _warm_up(self) -> None:
        """Take a step as it will be captured, so that nothing is compiled or chosen then."""
        stream, current = side_stream(self.device), torch.cuda.current_stream(self.device)
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            self._one_step()
        current.wait_stream(stream)

    def _warm_up_watched(self) -> None:
        """Take a step, and refuse the graph if it waits for the device.

        A capture that fails for that leaves its stream and memory pool in use for good.
        """
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                self._warm_up()
            finally:
                torch.cuda.set_sync_debug_mode(before)
        if any("called a synchronizing" in str(warning.message) for warning in caught):
            self._refuse("a step waits for the device")

    def _captured(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        failure: Exception | None = None
        current = torch.cuda.current_stream(self.device)
        gc.collect()  # a graph of an earlier training that is freed meanwhile ends the capture
        with torch.cuda.device(self.device):
            try:
                with torch.cuda.graph(graph, stream=side_stream(self.device)):
                    try:
                        self._one_step()
                    except Exception as error:  # raised once the capture has ended
                        failure = error
            except Exception as error:
                raise failure or error from None
            finally:
                torch.cuda.set_stream(current)  # a capture that can't end leaves its own
        if failure is not None:
            raise failure
        return graph

    def _one_step(self) -> None:
        """What is captured: the host reads nothing of it, and nothing depends on the host."""
        assert self.chunk is not None
        prompt = map_tensors(self._current, self.chunk.prompt)
        batch = Batch(prompt, self._current(self.chunk.target))
        losses = self.update(batch, self.factors.index_select(0, self.index)[0], self.step)
        self.losses.index_copy_(0, self.index, losses.unsqueeze(0).to(self.losses))
        self.index.add_(1)
        self.step.add_(1)

    def _current(self, field: Tensor) -> Tensor:
        # By an index on the device: a Python index would be captured as a constant.
        return field.index_select(1, self.index).squeeze(1)


def side_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream of a device on which all steps are warmed up and captured.

    Memory that a stream has freed stays its own, and so does cuBLAS's workspace, for good.
    """
    return _stream_of(torch.cuda.current_device() if device.index is None else device.index)


@functools.cache
def _stream_of(gpu: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(gpu)  # type: ignore[no-untyped-call]


def refusal(state: TrainingState) -> str | None:
    """Return why a step can't be captured, or None."""
    if state.device.type != "cuda":
        return "it needs a CUDA device"
    if state.replicas.random_states is not None:
        return "the model draws random numbers in its forward pass"
    if state.adaptive is not None:
        return "the adaptive schedule measures gradients between steps"
    if not (isinstance(state.optimizer, Stacked) and state.optimizer.elementwise):
        return "the optimizer decides on the host"
    return None
