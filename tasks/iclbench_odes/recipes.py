"""Recipes for `ode-operator`."""

from iclbench import Recipe

#: The source's transformer and optimizer, of its depths the default.
PAPER = Recipe(
    steps=2_500_000,
    batch=64,
    learning_rate=1e-4,
    schedule="step",
    decay_every=10_000,
    decay=0.9,
    model_args={"layers": 12, "width": 256, "heads": 8},
)

#: Takes half a minute of a core per seed.
QUICK = Recipe(
    steps=1000,
    batch=64,
    learning_rate=1e-3,
    schedule="cosine",
    warmup=50,
    clip=1.0,
    model_args={"layers": 2, "width": 64, "heads": 2, "init_std": 0.06},
)
