"""Recipes for the categorical tasks."""

from iclbench import Recipe

QUICK = Recipe(
    steps=3_000,
    batch=64,
    learning_rate=2e-3,
    schedule="cosine",
    warmup=50,
    model_args={"layers": 2, "width": 32, "init_std": 0.06},
)
"""Takes minutes on two cores."""

PAPER = Recipe(steps=100_000, batch=64, learning_rate=1e-3, schedule="cosine", warmup=1_000)
"""Fresh contexts, until the loss reaches a plateau.

The paper passes over L = 2048 contexts (Figure 3 and Appendix F): `pool=2048` with `chunk=32`. It
gives no optimizer or batch size.
"""
