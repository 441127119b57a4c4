"""Every model trains on a GPU by a CUDA graph."""

from __future__ import annotations

import pytest
import torch
from trainings import finished, training_of

from iclbench.api.architecture import Solver
from iclbench.kit.trials import forms_of_tasks, models_for, small_args
from iclbench.training.cuda_graph import GraphStep

#: transformers reads on the host whether positions are those of several packed sequences.
WAITING = {"huggingface"}


def cases():
    """Every trained model with the first tasks that it supports: one of numbers, one of ids."""
    seen = set()
    for task in forms_of_tasks():
        for model in models_for(task):
            case = (model.name, task.signature.target == "token")
            if case not in seen and not issubclass(model, Solver):
                seen.add(case)
                yield model, task


@pytest.mark.gpu
def test_every_model_s_step_is_captured_on_a_gpu(subtests):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    for model, task in cases():
        with subtests.test(model=model.name, task=task.name):
            step_is_captured(model, task)


def step_is_captured(model, task):
    request = {
        "model": model.name,
        "task": task.name,
        "model_args": small_args(model.Config),
        "task_args": task.config.model_dump(exclude_defaults=True),
    }
    # The first chunk warms up, the second is replayed.
    recipe = {"steps": 4, "batch": 4, "chunk": 2}
    graph, plain = (
        training_of(request, 1, recipe, device=torch.device("cuda"), engine="plain")
        for _ in range(2)
    )
    graph.take_step = GraphStep(graph.update, graph)
    # Some have diverged by then, which a graph records too.
    curves = [torch.tensor(finished(trainer).curve) for trainer in (graph, plain)]
    torch.testing.assert_close(*curves, rtol=1e-6, atol=0, equal_nan=True)
    waits = "no CUDA graph: a step waits for the device"
    assert graph.note == (waits if model.name in WAITING else None)
