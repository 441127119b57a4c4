"""Recipes of the word problems."""

from iclbench import Recipe

SMOKE = Recipe(
    steps=20,
    batch=16,
    learning_rate=1e-3,
    schedule="cosine",
    model_args={"layers": 1, "width": 16},
    task_args={"length": 8},
)

QUICK = Recipe(
    steps=2_000,
    batch=64,
    optimizer="adamw",
    optimizer_args={"weight_decay": 0.01},
    learning_rate=3e-3,
    schedule="cosine",
    warmup=100,
    clip=1.0,
    model_args={"layers": 1, "width": 32, "positions": "none", "init_std": 0.1},
    task_args={"length": 32},
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
