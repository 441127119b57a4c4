"""Systems and small linear transformers, for tests."""

from __future__ import annotations

import torch

from iclbench.api.config import parse_config
from iclbench_linear_systems.task import LinearSystemConfig, LinearSystems
from iclbench_linear_transformer.architecture import (
    LinearTransformer,
    LinearTransformerConfig,
)


def make_task(**config) -> LinearSystems:
    return LinearSystems(parse_config(LinearSystemConfig, config, "task"))


def make_model(task, **config):
    """A linear transformer with initial weights, float64."""
    torch.manual_seed(0)
    parsed = LinearTransformerConfig(**config)
    return LinearTransformer().build(task.signature, parsed).double()


def make_prompt(n, count=3, **config):
    """`count` systems of size n, float64."""
    (batch,) = make_task(sizes=n, **config).evaluation_batches(count, 0, torch.float64)
    return batch.prompt
