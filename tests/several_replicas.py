"""One forward pass of several replicas, without vmap, against each module as it is evaluated."""

from __future__ import annotations

import torch

from iclbench.api.capabilities import TrainingContext
from iclbench.api.prompts import stack
from iclbench.training.gradients.leading import Leading
from iclbench.training.replicas import Replicas

CPU = torch.device("cpu")


def assert_taken(modules, task):
    """Losses and gradients of float64 modules that take replicas, on prompts of `task`."""
    drawn = [
        task.sample(4, torch.Generator().manual_seed(r), CPU, torch.float64)
        for r in range(len(modules))
    ]
    replicas = Replicas(modules, CPU)
    context = TrainingContext(CPU, torch.float64, batch_size=4)
    program = Leading(replicas, task.loss, context, len(modules))  # raises where there is no form
    losses, grads = program(stack(drawn))
    for r, (module, batch) in enumerate(zip(modules, drawn, strict=True)):
        loss = task.loss(module.eval()(batch.prompt), batch.target).mean()
        own = torch.autograd.grad(loss, list(module.parameters()))
        torch.testing.assert_close(losses[r], loss.detach())
        torch.testing.assert_close(grads[r], torch.cat([g.flatten() for g in own]))
