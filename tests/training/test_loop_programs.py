"""A step has few operators and never waits for the device; replicas may differ in their task."""

from __future__ import annotations

import pytest
import torch
from toys import context
from trainings import AGREE, CPU, finished, new_training

from iclbench.api.config import parse_config
from iclbench.api.prompts import Batch
from iclbench.api.spec import RunSpec
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.training.gradients.capacity import Operators
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.loop import Training, batch_of
from iclbench.training.state import Replica


def operators_of_a_step(layers, replicas, fast=True):
    training = new_training(replicas, layers=layers, dtype=torch.float32)
    assert training.choice.how.group_size == replicas
    if not fast:  # a hook makes training call the paper's module
        training.replicas.template.register_forward_hook(lambda *_: None)
        training.program = Threaded(training.replicas, training.task.loss, context())
    batch = training.trial()
    training.update(batch, 1.0, 1)  # so that one-time work is not counted
    with Operators() as operators:
        training.update(batch, 1.0, 2)
    return operators


@pytest.mark.parametrize(
    ("layers", "replicas", "fast", "most"),
    [
        (2, 1, True, 100),
        (12, 1, True, 390),
        # On a GPU attention is written out, as here.
        (2, 1, False, 116),
        (12, 1, False, 486),
        (2, 4, True, 167),
        (12, 4, True, 736),
    ],
)
def test_step_has_few_operators_and_does_not_wait(layers, replicas, fast, most):
    """Forward, backward, clip, Adam and the flags of the transformer."""
    operators = operators_of_a_step(layers, replicas, fast)
    assert operators.total <= most
    waits = {"_local_scalar_dense", "item", "nonzero", "is_nonzero"}
    assert not waits & set(operators.counts)


def test_number_of_operators_does_not_depend_on_replicas():
    assert operators_of_a_step(2, 3).counts == operators_of_a_step(2, 6).counts


def test_each_replica_draws_from_its_own_task():
    """Replicas whose tasks differ in noise learn the same as alone."""

    def plan(noise):
        request = {
            "model": "baseconv", "task": "least-squares", "recipe": "smoke", "dtype": "float64",
            "task_args": {"dim": 2, "examples": 4, "noise": noise}, "seeds": 1,
            "model_args": {"layers": 1, "width": 8}, "recipe_args": {"steps": 10, "batch": 4},
        }  # fmt: skip
        return resolve(parse_config(RunSpec, request, "test"))

    plans = [plan(noise) for noise in (0.0, 0.7)]
    assert plans[0].train_key == plans[1].train_key
    options = {"device": CPU, "dtype": torch.float64}

    def train(plans):
        modules = [initial_module(p, 0).double() for p in plans]
        members = [Replica(0, 1e-2, p.task) for p in plans]
        return finished(Training(modules, members, plans[0].task, plans[0].recipe, **options))

    together = train(plans)
    assert together.replicas == 2
    for column, single_plan in enumerate(plans):
        alone = torch.tensor([row[0] for row in train([single_plan]).curve])
        losses = torch.tensor([row[column] for row in together.curve])
        assert torch.allclose(losses, alone, rtol=AGREE, atol=0)
    assert together.curve[0][0] != together.curve[0][1]


def test_a_batch_of_a_chunk_has_every_field():
    training = new_training()
    chunk = training.data.next()
    batch = batch_of(chunk, 1)
    assert isinstance(batch, Batch)
    for part, whole in zip(
        (*batch.prompt, batch.target), (*chunk.prompt, chunk.target), strict=True
    ):
        assert torch.equal(part, whole[:, 1])
