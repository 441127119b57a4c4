"""Recipes for linear systems."""

from iclbench import Recipe

QUICK = Recipe(
    steps=6_000,
    batch=128,
    optimizer_args={"betas": [0.9, 0.98]},
    learning_rate=3e-3,
    schedule="cosine",
    warmup=200,
    clip=1.0,
)
"""Takes minutes on two cores."""

PAPER = QUICK.model_copy(update={"steps": 200_000, "batch": 1024})
"""The poster gives no budget; this is enough to reach a plateau, and needs a GPU."""
