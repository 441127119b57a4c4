"""The recipe `linear-attention`."""

from iclbench import Recipe

LINEAR_ATTENTION = Recipe(
    steps=4000,
    batch=128,
    learning_rate=3e-3,
    schedule="cosine",
    warmup=50,
    # The models are polynomials of high degree, whose gradients are huge on rare prompts.
    clip=0.1,
)
