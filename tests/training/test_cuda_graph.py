"""A step that a graph captures is the step of the loop."""

from __future__ import annotations

import pytest
import torch
from toys import Static
from trainings import AGREE, finished, losses_differ_by, training

from iclbench.training.cuda_graph import GraphStep


class GraphOnCPU(GraphStep):
    """The graph's buffers and its one step, replayed by calling it; nothing is captured."""

    def _warm_up(self):
        self._one_step()

    def _captured(self):
        body = self._one_step

        class Replay:
            def replay(self):
                body()

        return Replay()


def captured(made, cls=GraphOnCPU):
    made.take_step = cls(made.update, made)
    return made


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
def test_the_step_that_a_graph_captures_is_the_plain_step(recipe):
    """Batch, factor and step are read from buffers, and all state changes in place."""
    expected = training(recipe=recipe)
    made = captured(training(recipe=recipe))
    made.program = made._wrapped(Static(made.choice.program))
    state = [made.replicas.flat, made.alive, made.steps_alive, *made.optimizer.buffers.values()]
    state += [] if made.mean_gradient is None else [made.mean_gradient]
    addresses = [t.data_ptr() for t in state]
    assert losses_differ_by(made, expected) < AGREE
    assert made.take_step.graph is not None
    assert made.engine == "vmapped graph"
    now = [made.replicas.flat, made.alive, made.steps_alive, *made.optimizer.buffers.values()]
    now += [] if made.mean_gradient is None else [made.mean_gradient]
    assert [t.data_ptr() for t in now] == addresses


def test_a_graph_notes_when_a_replica_diverges():
    recipe = {"optimizer": "sgd", "schedule": "constant", "clip": None}
    expected, made = training(recipe=recipe), captured(training(recipe=recipe))
    for one in (expected, made):
        one.rates[1] = 1e30
    a, b = finished(expected), finished(made)
    assert a.diverged_at == b.diverged_at
    assert a.diverged_at[1] is not None


def test_what_fails_to_be_captured_goes_on_step_by_step(capsys):
    class Failing(GraphOnCPU):
        def _captured(self):
            raise RuntimeError("operation not permitted when stream is capturing")

    made = captured(training(), Failing)
    assert losses_differ_by(made, training()) == 0
    assert made.engine == "vmapped"
    assert "not permitted" in made.note
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_graph_is_refused_with_a_reason_where_there_is_no_gpu():
    assert training().note is None
    made = training(engine="graph")
    assert made.engine == "vmapped"
    assert made.note == "no CUDA graph: it needs a CUDA device"


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
    made = training(replicas, **options)
    assert losses_differ_by(made, training(replicas, engine="plain", **options)) < 1e-9
    name = "threaded" if replicas == 1 else "vmapped"
    assert made.engine == f"{name} graph", made.note


@pytest.mark.gpu
@pytest.mark.parametrize("replicas", [1, 4])
def test_a_compiled_step_is_captured_on_a_gpu(replicas):
    made = training(replicas, device=cuda(), engine="compiled")
    assert losses_differ_by(made, training(replicas, device=cuda(), engine="plain")) < 1e-9
    assert made.engine == "compiled graph", made.note


@pytest.mark.gpu
def test_a_graph_waits_for_nothing_within_a_chunk_on_a_gpu():
    made = training(4, device=cuda(), recipe={"steps": 1000})
    for _ in range(2):
        made.advance()
    drawn = made.data.next()
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(made.recipe.chunk):
            made.take_step.graph.replay()
    finally:
        torch.cuda.set_sync_debug_mode(before)
    assert drawn.target.is_cuda
