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
    learning_rate=1e-3,
    # The source's rate rises to the middle and falls to 0, linearly; here it falls by cosine.
    schedule="cosine",
    warmup=250_000,
    model_args={"layers": 8, "width": 128, "heads": 2, "init_std": 0.02},
    task_args={"dim": 8, "examples": 16},
)
"""GPT-2 of 8 layers, width 128 and 2 heads; Adam up to 1e-3, batch 256, 500,000 steps."""
