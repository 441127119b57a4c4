"""The training of linear attention."""

from iclbench import Recipe

LINEAR_ATTENTION = Recipe(
    steps=4000,
    batch=128,
    learning_rate=3e-3,
    schedule="cosine",
    warmup=50,
    # A polynomial of the data of high degree has rare, huge gradients.
    clip=0.1,
)
