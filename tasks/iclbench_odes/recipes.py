"""Recipes for `ode-operator`."""

from iclbench import Recipe

#: The source's transformer and optimizer, of its depths the default. Its learning rate stops
#: falling at 1e-10.
PAPER = Recipe(
    steps=2_500_000,
    batch=64,
    # As in the source: gradients fall below Adam's default of 1e-8, which would shrink the steps.
    optimizer_args={"eps": 1e-16},
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
