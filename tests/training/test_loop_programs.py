"""A step has few operators and never waits for the device; replicas may differ in their task."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from toys import context
from trainings import AGREE, CPU, finished, training, training_of

from iclbench.api.config import parse_config
from iclbench.api.prompts import Batch
from iclbench.api.spec import RunSpec
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.training.gradients import capacity
from iclbench.training.gradients.capacity import Operators
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.loop import Training, batch_of
from iclbench.training.state import Replica
from iclbench_transformer import fast as attention


def operators_of_a_step(layers, replicas, fast=True):
    trainer = training(replicas, layers=layers, dtype=torch.float32)
    assert trainer.choice.how.group_size == replicas
    if not fast:  # a hook makes training call the paper's module
        trainer.replicas.template.register_forward_hook(lambda *_: None)
        trainer.program = Threaded(trainer.replicas, trainer.task.loss, context())
    batch = trainer.trial()
    trainer.update(batch, 1.0, 1)  # so that one-time work is not counted
    with Operators() as operators:
        trainer.update(batch, 1.0, 2)
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


SMALL = {"layers": 2, "width": 8}
LEAST_SQUARES = {"task": "least-squares-prefixes", "task_args": {"dim": 2, "examples": 4}}
STORIES = {"task": "stories", "task_args": {"length": 16, "beginning": 6, "vocabulary": 300}}
REQUESTS = {
    "transformer": {"model": "transformer", "model_args": SMALL, **LEAST_SQUARES},
    "baseconv": {"model": "baseconv", "model_args": SMALL, **LEAST_SQUARES},
    "lsa": {
        "model": "lsa",
        "model_args": {"layers": 2, "blocks": 2},
        "task": "ridge",
        "task_args": {"dim": 2, "examples": 3},
    },
    "linear-transformer, systems": {
        "model": "linear-transformer",
        "model_args": {"layers": 2},
        "task": "linear-system",
    },
    "linear-transformer, regression": {
        "model": "linear-transformer",
        "model_args": {"layers": 2},
        "task": "least-squares",
        "task_args": {"dim": 2, "examples": 4},
    },
    "gd-transformer": {
        "model": "gd-transformer",
        "model_args": {"blocks": 2},
        "task": "categorical",
    },
    "text": {"model": "transformer", "model_args": SMALL, **STORIES},
    "text by gd-transformer": {"model": "gd-transformer-causal", **STORIES},
}
#: Models whose form takes several replicas, which engine auto then prefers.
TAKING_REPLICAS = ["lsa", "linear-transformer, systems", "linear-transformer, regression"]


@cache
def plain_curve(model):
    return curve(model, "plain", "plain")


def curve(model, engine, name):
    """Losses of 30 steps of clipped Adam, (points, R), by the program of that name."""
    trainer = training_of(REQUESTS[model], 2, {"clip": 1.0}, engine=engine)
    assert (trainer.program.name, trainer.note) == (name, None)
    return torch.tensor(finished(trainer).curve)


@pytest.mark.parametrize(
    ("model", "engine"),
    [(model, "auto") for model in TAKING_REPLICAS]
    + [(model, engine) for model in REQUESTS for engine in ("vmapped", "threaded", "slices")],
)
def test_every_program_trains_as_plain_does(model, engine, monkeypatch):
    """Losses after 30 steps differ by at most 1e-10 in float64, also by forms of large batches."""
    monkeypatch.setattr(attention, "WORTH_MERGING", 0)
    if engine == "slices":
        monkeypatch.setattr(capacity, "SLICE_ELEMENTS", 1)
        losses = curve(model, "threaded", "threaded")
    elif engine == "auto":
        losses = curve(model, "auto", "leading")
    else:
        losses = curve(model, engine, engine)
    assert plain_curve(model).isfinite().all()
    assert not torch.equal(plain_curve(model)[0], plain_curve(model)[-1])
    torch.testing.assert_close(losses, plain_curve(model), rtol=AGREE, atol=0)


def test_a_batch_of_a_chunk_has_every_field():
    trainer = training()
    chunk = trainer.data.next()
    batch = batch_of(chunk, 1)
    assert isinstance(batch, Batch)
    for part, whole in zip(
        (*batch.prompt, batch.target), (*chunk.prompt, chunk.target), strict=True
    ):
        assert torch.equal(part, whole[:, 1])
