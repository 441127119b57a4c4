"""Recipes for the task imagenet."""

from iclbench import Recipe

#: d' of the paper, for models that have it.
_EMBEDDING = 4

QUICK = Recipe(
    steps=400,
    batch=64,
    learning_rate=3e-3,
    schedule="cosine",
    warmup=50,
    model_args={"embedding": _EMBEDDING, "layers": 2, "width": 32, "init_std": 0.06},
)
"""Takes seconds on two cores; longer training memorizes the few classes."""

PAPER = Recipe(
    steps=16_000,
    batch=64,
    learning_rate=1e-3,
    schedule="cosine",
    warmup=500,
    # 32 batches of 64 are one pass over the 2048 contexts.
    chunk=32,
    model_args={"embedding": _EMBEDDING},
    task_args={"pool": 2048},
)
"""500 epochs of L = 2048 contexts, as in the paper, which gives no optimizer or batch size."""
