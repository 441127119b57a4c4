"""A look at a task and at metrics before anything is trained, so that no mistake costs a training.

What a task measures itself is looked at by the first evaluation on validation prompts, which comes
before the first step too.
"""

from __future__ import annotations

import torch
from torch import nn

from ..api.errors import UsageError
from ..api.evaluation import EvaluationContext
from ..api.random import torch_generator
from ..precision import DTYPES, full_precision
from .evaluate import digest_of_prompts, evaluate
from .plan import Plan

#: How many prompts of each case are looked at.
PROMPTS = 2


def require_sound_prompts(plan: Plan) -> None:
    """Raise UsageError for prompts that change, or targets that predictions would be broadcast to.

    Prompts that are drawn by anything but `random` change from one evaluation to the next, and the
    digest of their draws does not show it.
    """
    task = plan.task
    dtype = DTYPES[plan.spec.dtype]
    with full_precision(dtype):
        first, again = (
            task.evaluation_batches(PROMPTS, plan.spec.eval_seed, dtype) for _ in range(2)
        )
    if digest_of_prompts(task, first) != digest_of_prompts(task, again):
        raise UsageError(
            f"task {task.name}: its evaluation prompts differ when they are drawn again; draw "
            "numbers by `random` alone"
        )
    target = first[0].target
    expected = task.signature.target_shape(target)
    if tuple(target.shape) != expected:
        raise UsageError(f"task {task.name}: targets are {tuple(target.shape)}, not {expected}")


def require_sound_metrics(module: nn.Module, plan: Plan) -> None:
    """Evaluate the requested metrics of a model before its training, on a few prompts.

    Raises RunError for values of a shape or a name that they can't have.
    """
    if not plan.metrics:
        return
    spec, dtype = plan.spec, DTYPES[plan.spec.dtype]
    generator = torch_generator("cpu", "preflight")
    context = EvaluationContext(torch.device("cpu"), generator, batch_size=PROMPTS)
    batches = plan.task.evaluation_batches(PROMPTS, spec.eval_seed, dtype)
    with torch.random.fork_rng(devices=[]):
        evaluate(plan.task, module.eval(), batches, context, list(plan.metrics))
