"""A step captured as a CUDA graph equals the loop's step."""

from __future__ import annotations

import pytest
import torch
from trainings import AGREE, finished, losses_differ_by, new_training

from iclbench.training.cuda_graph import GraphStep


class GraphOnCPU(GraphStep):
    """Uses the graph's buffers, but calls the step instead of capturing and replaying it."""

    def _warm_up(self):
        self._one_step()

    def _captured(self):
        body = self._one_step

        class Replay:
            def replay(self):
                body()

        return Replay()


def captured(training, cls=GraphOnCPU):
    training.take_step = cls(training.update, training)
    return training


@pytest.mark.parametrize(
    "recipe",
    [
        {"clip": 0.1},
        {"optimizer": "adamw", "warmup": 7},
        {"optimizer": "sgd", "optimizer_args": {"momentum": 0.9}},
        {"gradient_memory": 0.9},
        {"steps": 28},
    ],
    ids=str,
)
def test_captured_step_equals_the_plain_step(recipe):
    """The step reads batch, factor and step number from buffers and changes all state in place."""
    expected = new_training(recipe=recipe)
    training = captured(new_training(recipe=recipe))
    state = [
        training.replicas.flat,
        training.alive,
        training.steps_alive,
        *training.optimizer.buffers.values(),
    ]
    state += [] if training.mean_gradient is None else [training.mean_gradient]
    addresses = [t.data_ptr() for t in state]
    assert losses_differ_by(training, expected) < AGREE
    assert training.take_step.graph is not None
    assert training.engine == "vmapped graph"
    new_state = [
        training.replicas.flat,
        training.alive,
        training.steps_alive,
        *training.optimizer.buffers.values(),
    ]
    new_state += [] if training.mean_gradient is None else [training.mean_gradient]
    assert [t.data_ptr() for t in new_state] == addresses


def test_graph_records_when_a_replica_diverges():
    recipe = {"optimizer": "sgd", "schedule": "constant", "clip": None}
    expected, training = new_training(recipe=recipe), captured(new_training(recipe=recipe))
    expected.rates[1] = training.rates[1] = 1e30
    plain, graph = finished(expected), finished(training)
    assert graph.diverged_at == plain.diverged_at
    assert plain.diverged_at[1] is not None


def test_failed_capture_falls_back_to_steps(capsys):
    class Failing(GraphOnCPU):
        def _captured(self):
            raise RuntimeError("operation not permitted when stream is capturing")

    training = captured(new_training(), Failing)
    assert losses_differ_by(training, new_training()) == 0
    assert training.engine == "vmapped"
    assert "not permitted" in training.note
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_graph_without_a_gpu_is_refused_with_a_reason():
    assert new_training().note is None
    training = new_training(engine="graph")
    assert training.engine == "vmapped"
    assert training.note == "no CUDA graph: it needs a CUDA device"


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
    training = new_training(replicas, **options)
    assert losses_differ_by(training, new_training(replicas, engine="plain", **options)) < 1e-9
    name = "threaded" if replicas == 1 else "vmapped"
    assert training.engine == f"{name} graph", training.note


@pytest.mark.gpu
@pytest.mark.parametrize("replicas", [1, 4])
def test_a_compiled_step_is_captured_on_a_gpu(replicas):
    training = new_training(replicas, device=cuda(), engine="compiled")
    assert losses_differ_by(training, new_training(replicas, device=cuda(), engine="plain")) < 1e-9
    assert training.engine == "compiled graph", training.note


@pytest.mark.gpu
def test_graph_does_not_wait_within_a_chunk_on_a_gpu():
    training = new_training(4, device=cuda(), recipe={"steps": 1000})
    for _ in range(2):
        training.advance()
    batch = training.data.next()
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(training.recipe.chunk):
            training.take_step.graph.replay()
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    assert batch.target.is_cuda
