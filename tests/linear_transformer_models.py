"""Systems and small linear transformers, for tests."""

from __future__ import annotations

import torch

from iclbench.api.config import parse_config
from iclbench_linear_systems.task import LinearSystemConfig, LinearSystems
from iclbench_linear_transformer.architecture import (
    LinearTransformer,
    LinearTransformerConfig,
)


def task(**config) -> LinearSystems:
    return LinearSystems(parse_config(LinearSystemConfig, config, "task"))


def model(made, **config):
    torch.manual_seed(0)
    configured = LinearTransformerConfig(**config)
    return LinearTransformer().build(made.signature, configured).double()


def prompts(n, count=3, **config):
    (batch,) = task(sizes=n, **config).evaluation_batches(count, 0, torch.float64)
    return batch
