"""Sizes that would take more memory than there is are refused before anything is made."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from iclbench import RunSpec, UsageError
from iclbench.api.config import Config
from iclbench.runs.plan import resolve
from iclbench.runs.sizes import bounded_model, numbers_per_prompt, require_small_arguments

LEAST_SQUARES = {"model": "zero", "task": "least-squares"}


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"eval_prompts": 10**12}, "1,000,000,000,000 prompts need"),
        (
            {"model": "transformer", "eval_prompts": 10**6, "seeds": tuple(range(200))},
            "200,000,000 values are more than",
        ),
        ({"task_args": {"examples": 10**9}}, "examples=1,000,000,000 is too large"),
        ({"task_args": {"dim": 10**7, "examples": 10**7}}, "2,048 prompts need"),
        ({"model": "transformer", "model_args": {"layers": 10**9}}, "layers=1,000,000,000"),
        ({"model": "transformer", "recipe_args": {"chunk": 10**9}}, "64,000,000,000 prompts"),
        ({"model": "transformer", "recipe_args": {"batch": 10**10}}, "200,000,000,000 prompts"),
        (
            {"model": "baseconv", "weights": "gd-causal", "weights_args": {"steps": 10**6}},
            "construction gd-causal: steps=1,000,000 is too large",
        ),
    ],
)
def test_a_request_that_needs_too_much_is_refused_at_once(request_, reason):
    start = time.process_time()
    with pytest.raises(UsageError, match=reason):
        resolve(RunSpec(**{**LEAST_SQUARES, **request_}))
    assert time.process_time() - start < 10


def test_what_a_record_can_hold_depends_on_models_and_metrics(monkeypatch):
    monkeypatch.setattr("iclbench.runs.sizes.machine_memory", lambda: 10**15)
    many = {"task": "least-squares", "eval_prompts": 30_000_000}
    assert resolve(RunSpec(model="least-squares-qr", **many))  # one model, whatever the seeds
    with pytest.raises(UsageError, match="150,000,000 values are more than"):
        resolve(RunSpec(model="transformer", **many))
    many["eval_prompts"] = 7_000_000  # an error for each of 21 prefixes, and their mean
    with pytest.raises(UsageError, match="154,000,000 values are more than"):
        resolve(RunSpec(model="least-squares-qr", **many | {"task": "least-squares-prefixes"}))


class Layers(Config):
    sizes: list[dict[str, int]] = []
    groups: list[list[int]] = []


def test_integers_are_found_in_nested_arguments():
    require_small_arguments(Layers(sizes=[{"n": 9}], groups=[[9]]), "model m")
    for large in (Layers(sizes=[{"n": 10**9}]), Layers(groups=[[1], [10**9]])):
        with pytest.raises(UsageError, match="=1,000,000,000 is too large"):
            require_small_arguments(large, "model m")


def test_seeds_may_be_large():
    plan = resolve(RunSpec(**LEAST_SQUARES, task_args={"task_seed": 2**40}, eval_seed=2**40))
    assert plan.task.config.task_seed == 2**40


@pytest.mark.parametrize("task", ["least-squares", "ridge", "mqar", "stories"])
def test_the_size_of_a_prompt_is_known_before_it_is_drawn(task):
    """The target of scores over a vocabulary is a number, not the scores."""
    plan = resolve(RunSpec(model="transformer", task=task))
    (batch,) = plan.task.evaluation_batches(2, 0, torch.float32)
    numbers = sum(t[0].numel() for t in (*batch.prompt, batch.target))
    assert numbers_per_prompt(plan.task.signature) == numbers


def test_a_model_that_grows_too_large_is_stopped_and_others_are_left_alone():
    with pytest.raises(UsageError, match="more than 20,000 parameter tensors"), bounded_model("m"):
        nn.Sequential(*(nn.Linear(1, 1) for _ in range(20_000)))
    with pytest.raises(UsageError, match="m does not fit into this"), bounded_model("m"):
        nn.Linear(10**8, 10**8)
    with pytest.raises(UsageError, match="this machine has"), bounded_model("m"):
        nn.Module().register_parameter("p", nn.Parameter(torch.zeros(1).expand(2**31, 2**10)))
    with pytest.raises(UsageError, match="m has buffers of more than"), bounded_model("m"):
        nn.Module().register_buffer("mask", torch.zeros(1).expand(2**31, 2**10))
    nn.Sequential(*(nn.Linear(1, 1) for _ in range(20_000)))
