"""Prompts and small models of the GD transformer, for tests."""

from __future__ import annotations

import torch

from iclbench import Categorical
from iclbench.precision import default_dtype
from iclbench_gd_transformer.config import GDTransformerConfig
from iclbench_gd_transformer.free_form import FreeForm
from iclbench_gd_transformer.gd_form import GDForm

KERNELS = ["linear", "polynomial", "rbf", "exponential", "laplacian", "softmax"]
C, D, WIDTH, N, Q = 6, 3, 4, 7, 2


def make_prompt(seed=0, b=3):
    """A random prompt of b contexts, float64."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(b, N, D, generator=generator, dtype=torch.float64)
    y = torch.randint(C, (b, N), generator=generator)
    return Categorical(x, y, torch.randn(b, Q, D, generator=generator, dtype=torch.float64))


def gd_form(**options):
    """A constrained form of three blocks with different step sizes, float64."""
    torch.manual_seed(1)
    config = GDTransformerConfig(**{"embedding": WIDTH, "blocks": 3, "scale": 0.7, **options})
    with default_dtype(torch.float64):
        model = GDForm(C, D, config)
    with torch.no_grad():
        model.step.copy_(torch.linspace(0.5, 1.5, len(model.step)))
    return model


def free_form(blocks=1, kernel="softmax", **options):
    """A free form with random matrices, float64."""
    torch.manual_seed(2)
    config = GDTransformerConfig(embedding=WIDTH, blocks=blocks, kernel=kernel, **options)
    return FreeForm(C, D, config).double()


def on_the_sphere(prompt):
    """The prompt with covariates of norm 1."""
    return prompt._replace(
        x=prompt.x / prompt.x.norm(dim=2, keepdim=True),
        query=prompt.query / prompt.query.norm(dim=2, keepdim=True),
    )
