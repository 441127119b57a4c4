"""Recipes of the word problems."""

from iclbench import Recipe, smoke_recipe

SMOKE = smoke_recipe(length=8)

#: Short words, so that late products can be learned; the shifts evaluate longer ones.
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
"""AdamW, batch, learning rate, width and heads of Merrill et al.'s code.

Its defaults are 1 layer and 500 epochs of a fixed set, with words of up to 20 elements. The 4
layers, words of 128 elements and 100,000 steps on fresh words are chosen here.
"""
