"""Small trainings on least squares."""

from __future__ import annotations

import torch

from iclbench.api.config import parse_config
from iclbench.api.spec import RunSpec
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.training.loop import Training
from iclbench.training.state import Replica

CPU = torch.device("cpu")

#: Largest relative difference of losses after 30 steps by two programs in float64.
AGREE = 1e-10


def new_training(
    replicas=3, model="transformer", device=CPU, dtype=torch.float64, engine="auto", layers=1,
    recipe=None, **model_args
):  # fmt: skip
    values = {"steps": 30, "batch": 6, "chunk": 5, "schedule": "cosine", "clip": 1.0}
    request = {
        "model": model,
        "task": "least-squares-prefixes",
        "task_args": {"dim": 2, "examples": 4},
        "model_args": {"layers": layers, "width": 8, **model_args},
        "recipe": "smoke",
        "recipe_args": {**values, **(recipe or {})},
        "seeds": replicas,
        "dtype": str(dtype).removeprefix("torch."),
    }
    plan = resolve(parse_config(RunSpec, request, "test"))
    modules = [initial_module(plan, seed).to(dtype) for seed in range(replicas)]
    members = [Replica(seed, 1e-2 * (seed + 1)) for seed in range(replicas)]
    return Training(
        modules, members, plan.task, plan.recipe, device=device, dtype=dtype, engine=engine
    )


def finished(training):
    """Run a training to its end and return its result."""
    return training.run(None, lambda step, loss: None)


def losses_differ_by(a, b) -> float:
    """Run two trainings and return the largest relative difference of their curves."""
    a, b = finished(a), finished(b)
    assert a.curve_steps == b.curve_steps
    a, b = torch.tensor(a.curve), torch.tensor(b.curve)
    return float(((a - b) / b).abs().max())
