"""A step captured as a CUDA graph equals the loop's step."""

from __future__ import annotations

import warnings

import pytest
import torch
from toys import Static
from trainings import AGREE, finished, losses_differ_by, training

from iclbench.training.cuda_graph import GraphStep, side_stream


class GraphOnCPU(GraphStep):
    """Uses the graph's buffers, but calls the step instead of capturing and replaying it."""

    def _warm_up(self):
        self._one_step()

    _warm_up_watched = _warm_up

    def _captured(self):
        body = self._one_step

        class Replay:
            def replay(self):
                body()

        return Replay()


def captured(training, cls=GraphOnCPU):
    training.take_step = cls(training.update, training)
    return training


def test_a_training_of_one_chunk_captures_no_graph():
    trainer = captured(training(recipe={"steps": 2, "chunk": 4}))
    assert finished(trainer).engine == "vmapped"


@pytest.mark.parametrize(
    "recipe",
    [
        {"clip": 0.1},
        {"optimizer": "adamw", "warmup": 7},
        {"optimizer": "sgd", "optimizer_args": {"momentum": 0.9}},
        {"gradient_memory": 0.9},
        {"accumulate": 3},
        {"steps": 28},
    ],
    ids=str,
)
def test_captured_step_equals_the_plain_step(recipe):
    """The step reads batch, factor and step number from buffers and changes all state in place."""
    expected = training(recipe=recipe)
    trainer = captured(training(recipe=recipe))
    trainer.program = trainer._wrapped(Static(trainer.choice.program))
    state = [
        trainer.replicas.flat,
        trainer.alive,
        trainer.steps_alive,
        *trainer.optimizer.buffers.values(),
    ]
    state += [] if trainer.mean_gradient is None else [trainer.mean_gradient]
    addresses = [t.data_ptr() for t in state]
    assert losses_differ_by(trainer, expected) < AGREE
    assert trainer.take_step.graph is not None
    assert trainer.engine == "vmapped graph"
    new_state = [
        trainer.replicas.flat,
        trainer.alive,
        trainer.steps_alive,
        *trainer.optimizer.buffers.values(),
    ]
    new_state += [] if trainer.mean_gradient is None else [trainer.mean_gradient]
    assert [t.data_ptr() for t in new_state] == addresses


def test_graph_records_when_a_replica_diverges():
    recipe = {"optimizer": "sgd", "schedule": "constant", "clip": None}
    expected, trainer = training(recipe=recipe), captured(training(recipe=recipe))
    for training_ in (expected, trainer):
        training_.rates[1] = 1e30
    a, b = finished(expected), finished(trainer)
    assert a.diverged_at == b.diverged_at
    assert a.diverged_at[1] is not None


def test_failed_capture_falls_back_to_steps(capsys):
    class Failing(GraphOnCPU):
        def _captured(self):
            raise RuntimeError("operation not permitted when stream is capturing")

    trainer = captured(training(), Failing)
    assert losses_differ_by(trainer, training()) == 0
    assert trainer.engine == "vmapped"
    assert "not permitted" in trainer.note
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(("chunk", "step"), [(1, 2), (2, 2), (4, 4)])
def test_a_step_is_captured_once_two_have_warmed_up_and_the_last_was_watched(chunk, step):
    taken = []

    class Counting(GraphOnCPU):
        def _warm_up(self):
            taken.append("warm")
            self._one_step()

        def _warm_up_watched(self):
            taken.append("watched")
            self._one_step()

        def _captured(self):
            taken.append("captured")
            return super()._captured()

    recipe = {"chunk": chunk, "steps": 8}
    trainer = captured(training(recipe=recipe), Counting)
    assert losses_differ_by(trainer, training(recipe=recipe)) < AGREE
    assert taken == ["warm"] * (step - 1) + ["watched", "captured"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_step_that_waits_for_the_device_is_not_captured(monkeypatch, capsys, waits):
    modes = ["default"]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)

    class Watched(GraphOnCPU):
        _warm_up_watched = GraphStep._warm_up_watched

        def _warm_up(self):
            if modes[-1] == "warn":
                warnings.warn("Synchronization debug mode is a prototype", stacklevel=1)
                if waits:
                    warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
            self._one_step()

    trainer = captured(training(), Watched)
    assert losses_differ_by(trainer, training()) < AGREE
    assert modes == ["default", "warn", "default"]
    assert (trainer.take_step.graph is None) == waits
    assert trainer.note == ("no CUDA graph: a step waits for the device" if waits else None)
    assert len(capsys.readouterr().err.splitlines()) == waits


def test_each_gpu_has_one_side_stream(monkeypatch):
    current = [98]
    monkeypatch.setattr(torch.cuda, "Stream", lambda gpu: f"a stream of {gpu}")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[-1])
    assert side_stream(torch.device("cuda")) == "a stream of 98"
    current.append(99)
    assert side_stream(torch.device("cuda")) == "a stream of 99"
    assert side_stream(torch.device("cuda:99")) is side_stream(torch.device("cuda"))


def test_graph_without_a_gpu_is_refused_with_a_reason():
    assert training().note is None
    trainer = training(engine="graph")
    assert trainer.engine == "vmapped"
    assert trainer.note == "no CUDA graph: it needs a CUDA device"


def cuda():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.device("cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["transformer", "baseconv"])
@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("recipe", [{}, {"gradient_memory": 0.9, "optimizer": "sgd"}], ids=str)
def test_graph_and_plain_training_agree_on_a_gpu(model, replicas, recipe):
    options = {"model": model, "device": cuda(), "recipe": recipe}
    trainer = training(replicas, **options)
    assert losses_differ_by(trainer, training(replicas, engine="plain", **options)) < 1e-9
    name = "threaded" if replicas == 1 else "vmapped"
    assert trainer.engine == f"{name} graph", trainer.note


@pytest.mark.gpu
@pytest.mark.parametrize("replicas", [1, 4])
def test_a_compiled_step_is_captured_on_a_gpu(replicas):
    trainer = training(replicas, device=cuda(), engine="compiled")
    assert losses_differ_by(trainer, training(replicas, device=cuda(), engine="plain")) < 1e-9
    assert trainer.engine == "compiled graph", trainer.note


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_graph_does_not_wait_for_the_steps_of_a_chunk_on_a_gpu():
    trainer = training(4, device=cuda(), recipe={"steps": 1000})
    for _ in range(2):
        trainer.advance()
    assert trainer.take_step.graph is not None, trainer.note
    chunk = trainer.data.next(trainer.step)
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for index in range(trainer.recipe.chunk):  # the first fills what the graph reads
            trainer.take_step(chunk, index, trainer.step + index)
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    torch.cuda.synchronize()
    assert chunk.target.is_cuda


class Waiting:
    """A program that reads its losses on the host."""

    def __init__(self, program):
        self.program, self.name = program, program.name

    def __call__(self, batch):
        losses, gradients = self.program(batch)
        losses.tolist()
        return losses, gradients


@pytest.mark.gpu
def test_a_step_that_waits_is_not_captured_on_a_gpu():
    trainer = training(device=cuda())
    trainer.program = Waiting(trainer.program)
    assert losses_differ_by(trainer, training(engine="plain", device=cuda())) < 1e-9
    assert trainer.note == "no CUDA graph: a step waits for the device"
    # Nothing is left of it: the next training is captured.
    again = training(device=cuda())
    finished(again)
    assert again.engine == "vmapped graph", again.note


@pytest.mark.gpu
@pytest.mark.parametrize(("engine", "told"), [("auto", True), ("plain", False)])
def test_it_is_told_that_an_optimizer_is_not_captured_on_a_gpu(engine, told):
    trainer = training(device=cuda(), engine=engine, recipe={"optimizer": "soap"})
    reason = "no CUDA graph: the optimizer decides on the host"
    assert (reason in (trainer.note or "")) == told


@pytest.mark.gpu
def test_a_step_that_raises_while_it_is_captured_ends_the_capture_on_a_gpu():
    trainer = training(device=cuda())
    current, program = torch.cuda.current_stream(), trainer.program

    class Raising(Waiting):
        def __call__(self, batch):
            if torch.cuda.is_current_stream_capturing():
                raise RuntimeError("not while capturing")
            return program(batch)

    trainer.program = Raising(program)
    assert losses_differ_by(trainer, training(engine="plain", device=cuda())) < 1e-9
    assert trainer.note == "no CUDA graph: RuntimeError: not while capturing"
    assert torch.cuda.current_stream() == current
    again = training(device=cuda())
    finished(again)
    assert again.engine == "vmapped graph", again.note
