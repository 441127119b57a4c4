"""The training of the least-squares paper."""

from iclbench import Recipe

PAPER = Recipe(
    steps=1_000_000,
    batch=256,
    learning_rate=1e-3,
    schedule="step",
    decay_every=10_000,
    decay=0.9,
)
"""Table D.1 and "Training iterations 10⁶": Adam, batch 256, StepLR 0.9 every 10⁴ steps."""

WIDE = PAPER.model_copy(update={"model_args": {"width": 256}})
"""The same with an embedding size of 256 (D.2.4 and D.2.5)."""
