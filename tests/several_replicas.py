"""One forward pass of several replicas, without vmap, against each module as it is evaluated."""

from __future__ import annotations

import torch

from iclbench import training_batch
from iclbench.api.prompts import stack
from iclbench.training.replicas import Replicas

CPU = torch.device("cpu")


def assert_taken(modules, task):
    """Losses and gradients of float64 modules that take replicas, on prompts of `task`."""
    drawn = [
        training_batch(task, 4, torch.Generator().manual_seed(r), torch.float64)
        for r in range(len(modules))
    ]
    replicas = Replicas(modules, CPU)
    replicas.template.train()
    losses, grads = replicas.gradients(stack(drawn), task.loss)
    assert replicas.takes_replicas
    assert list(replicas._modules) == [(0, len(modules), 0)]
    for r, (module, batch) in enumerate(zip(modules, drawn, strict=True)):
        loss = task.loss(module.eval()(batch.prompt), batch.target).mean()
        own = torch.autograd.grad(loss, list(module.parameters()))
        torch.testing.assert_close(losses[r], loss.detach())
        torch.testing.assert_close(grads[r], torch.cat([g.flatten() for g in own]))
