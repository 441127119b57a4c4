"""How models of categories are trained."""

from iclbench import Recipe

QUICK = Recipe(
    steps=3_000,
    batch=64,
    learning_rate=2e-3,
    schedule="cosine",
    warmup=50,
    model_args={"layers": 2, "width": 32, "init_std": 0.06},
)
"""Minutes on two cores."""

PAPER = Recipe(steps=100_000, batch=64, learning_rate=1e-3, schedule="cosine", warmup=1_000)
"""The paper states epochs of training contexts, but no optimizer: enough for a plateau."""
