"""Recipes of the word problems."""

from iclbench import Recipe, smoke_recipe

SMOKE = smoke_recipe(length=8)

#: Words are short, so that products late in them give a signal; shifts make them longer.
QUICK = Recipe(
    steps=1_000,
    batch=64,
    optimizer="adamw",
    optimizer_args={"weight_decay": 0.01},
    learning_rate=3e-3,
    schedule="cosine",
    warmup=50,
    clip=1.0,
    model_args={"layers": 1, "width": 32, "heads": 2, "positions": "none", "init_std": 0.1},
    task_args={"length": 16},
)

PAPER = Recipe(
    steps=100_000,
    batch=32,
    optimizer="adamw",
    optimizer_args={"weight_decay": 0.01},
    learning_rate=1e-4,
    model_args={"layers": 4, "width": 512, "heads": 8, "positions": "none"},
    task_args={"length": 128},
)
