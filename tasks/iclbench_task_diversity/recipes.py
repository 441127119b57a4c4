"""Recipes for task diversity: small ones, and that of Raventós et al. (2023)."""

from iclbench import Recipe, smoke_recipe

SMOKE = smoke_recipe(dim=3, examples=4, tasks=8)

QUICK = Recipe(
    steps=3_000,
    batch=64,
    learning_rate=2e-3,
    schedule="cosine",
    warmup=200,
    model_args={"layers": 2, "width": 32, "init_std": 0.06},
    task_args={"dim": 3, "examples": 8},
)
"""D = 3 and N = 8: about a minute per model on two cores."""

PAPER = Recipe(
    steps=500_000,
    batch=256,
    # The warm-up multiplies the cosine: their product is at most 0.5245, so that the rate peaks at
    # the source's 1e-3.
    learning_rate=1.9065e-3,
    schedule="cosine",
    warmup=250_000,
    model_args={"layers": 8, "width": 128, "heads": 2, "init_std": 0.02},
    task_args={"dim": 8, "examples": 16},
)
"""GPT-2 of 8 layers, width 128 and 2 heads; Adam up to 1e-3, batch 256, 500,000 steps.

The source's rate rises to the middle and falls to 0, linearly. Here it peaks after 42% of the steps
and falls by cosine.
"""
