"""Recipes for `regbench`."""

from __future__ import annotations

from iclbench import Recipe, smoke_recipe

#: A transformer of RegBench's size. Of its settings, dropout of 0.1 and a last learning rate of a
#: tenth of the first are absent here.
PAPER = Recipe(
    # 200 epochs of 5000 prompts: a chunk of 157 batches is one.
    steps=200 * 157,
    batch=32,
    chunk=157,
    optimizer="adamw",
    optimizer_args={"weight_decay": 0.1},
    learning_rate=5e-4,
    schedule="cosine",
    warmup=20 * 157,
    model_args={"layers": 8, "width": 128, "heads": 2},
    task_args={"fixed": True, "length": None},
)

#: Takes half a minute of a core per seed.
QUICK = Recipe(
    steps=500,
    batch=32,
    optimizer="adamw",
    optimizer_args={"weight_decay": 0.1},
    learning_rate=3e-3,
    schedule="cosine",
    warmup=50,
    clip=1.0,
    model_args={"layers": 2, "width": 64, "heads": 2, "init_std": 0.06},
)

#: A smoke test: the first 32 ids of few automata.
SMOKE = smoke_recipe(length=32, automata=64, evaluation_automata=16)
