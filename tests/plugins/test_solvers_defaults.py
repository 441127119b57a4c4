"""Every solver and construction beats chance with its default arguments.

The prompts are neither those of the leaderboards (seed 0) nor those on which defaults were chosen
(1000 to 1002).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from support import evaluation_context

from iclbench import Architecture, Asked, Solver, UsageError, load_task
from iclbench.api.config import parse_config
from iclbench.plugins import host
from iclbench_solvers.iterative import GradientDescentConfig

PROMPTS, SEED = 256, 4321
#: Prompts of the methods that fit an estimator to each prefix, which takes up to seconds a prompt.
FEWER = {"least-squares-prefixes": 64}

#: Prompts of the tasks on which the best methods gain least.
MORE = {"categorical": 2048}

#: Methods that are below chance by their nature: in ten dimensions, 20 examples tell little about
#: the class beyond its frequency, which a nearest mean ignores, a vote of five estimates badly, and
#: a layer without a penalty overfits.
BELOW = {("categorical", name)
         for name in ("linear-probe", "nearest-class-mean", "nearest-neighbour-vote")}  # fmt: skip
# A tree of eight examples is better than chance by less than three standard errors.
BELOW |= {(name, "cart") for name in ("least-squares", "least-squares-prefixes", "ridge")}

#: The tasks with the sizes of the leaderboards, and a solver at chance of each.
TASKS = {
    "least-squares": ({"dim": 3, "examples": 8}, "zero"),
    "least-squares-prefixes": ({"dim": 3, "examples": 8}, "zero"),
    "least-squares-features": ({"dim": 3, "examples": 8}, "zero"),
    "ridge": ({"dim": 3, "examples": 8}, "zero"),
    "gradient": ({"dim": 3, "examples": 8, "iterates": 20}, "zero"),
    "gradient-steps": ({"dim": 3, "examples": 8, "steps": 4}, "zero"),
    "linear-system": ({"sizes": 5, "evaluate": 5}, "zero"),
    "read": ({"dim": 8, "length": 10}, "zero"),
    "affine": ({"dim": 8, "length": 10}, "zero"),
    "multiply": ({"dim": 8, "length": 10}, "zero"),
    "square": ({"dim": 8, "length": 10}, "zero"),
    "categorical": ({"classes": 10, "embedding": 4, "examples": 20}, "class-frequency"),
    "categorical-quadrants": ({"classes": 10, "embedding": 4, "examples": 20}, "class-frequency"),
    "imagenet": ({"dim": 16}, "class-frequency"),
}


@cache
def evaluation(name, prompts):
    """A task and its evaluation batches."""
    task = load_task(name, **TASKS[name][0])
    return task, task.evaluation_batches(prompts, SEED, torch.float32)


def scores(name, prompts, module):
    """The primary metric of each prompt; of an error, minus its digits."""
    task, batches = evaluation(name, prompts)
    with torch.no_grad():
        parts = [task.evaluate(module, batch, evaluation_context(256)) for batch in batches]
    values = task.combine(parts)[task.primary.metric].numpy()
    assert np.isfinite(values).all()
    return values if task.primary.metric == "nll" else 0.5 * np.log10(np.maximum(values, 1e-20))


def methods(task, asked):
    """The asked solvers above chance, and constructions, that accept a task: name → module."""
    for _, entry in host().entries("model"):
        if not asked(entry.name):
            continue
        architecture = host().load("model", entry.name, Architecture)()
        if isinstance(architecture, Solver) and not isinstance(architecture, Asked):
            config = None if architecture.chance else architecture.Config()
            if config is not None and architecture.supports(task.signature, config) is None:
                yield entry.name, architecture.build(task.signature, config)
        for weights, construction in architecture.constructions.items():
            if any(field.is_required() for field in construction.Config.model_fields.values()):
                continue
            try:
                args, state = construction.build(task.signature, construction.Config(), task)
            except UsageError:
                continue
            config = architecture.Config(**args)
            if architecture.supports(task.signature, config) is None:
                module = architecture.build(task.signature, config)
                module.load_state_dict({k: v.float() for k, v in state.items()}, strict=False)
                yield f"{entry.name} weights={weights}", module


#: It needs many prompts, which take more than five seconds.
SLOW = {"categorical"}


def one_by_one(name):
    """Whether a method fits an estimator to each prompt, or prefix."""
    return name in {"cart", "boosted-trees", "lasso", "two-layer-network"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in TASKS]
)
def test_every_method_beats_chance(name):
    check(name, MORE.get(name, PROMPTS), lambda method: not one_by_one(method))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["least-squares", "least-squares-prefixes", "ridge"])
def test_estimators_fitted_one_by_one_beat_chance(name):
    check(name, FEWER.get(name, PROMPTS), one_by_one)


def check(name, prompts, asked):
    """The methods of a task for which `asked(method)` holds beat its solver at chance."""
    task, _ = evaluation(name, prompts)
    solver = host().load("model", TASKS[name][1], Solver)()
    assert solver.chance
    chance = scores(name, prompts, solver.build(task.signature, solver.Config()))
    compared, failing = 0, {}
    for label, module in methods(task, asked):
        gain = chance - scores(name, prompts, module)
        error = gain.std(ddof=1) / len(gain) ** 0.5
        compared += 1
        if gain.mean() < 3 * error and (name, label) not in BELOW:
            failing[label] = (float(gain.mean()), float(error))
    assert compared
    assert not failing


def test_the_prompt_s_step_is_for_the_gradient_without_1_over_n():
    with pytest.raises(UsageError, match="step_size=prompt needs normalize=sum"):
        parse_config(GradientDescentConfig, {"step_size": "prompt"}, "model gradient-descent")
