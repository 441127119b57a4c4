"""Recipes for the function classes: small ones, and that of Garg et al. (2022)."""

from __future__ import annotations

from typing import Any

from iclbench import Recipe, Stage, smoke_recipe

#: Updates between two steps of the source's curriculum, and their number.
INTERVAL, INCREMENTS = 2_000, 15

SMOKE = smoke_recipe(dim=4, examples=8, sparsity=2, depth=2, hidden=4)


def quick(**task_args: Any) -> Recipe:
    """Two layers on a small prompt: less than a minute per model on two cores."""
    return Recipe(
        steps=2_000,
        batch=64,
        learning_rate=2e-3,
        schedule="cosine",
        warmup=100,
        model_args={"layers": 2, "width": 32, "init_std": 0.06},
        task_args={"dim": 4, "examples": 12, **task_args},
    )


def curriculum(first_points: int, increment: int) -> tuple[Stage, ...]:
    """The source's curriculum: dimensions 5…19 by 1, and points from the first by the increment."""
    return tuple(
        Stage(
            steps=INTERVAL,
            task_args={"active_dim": 5 + i, "active_points": first_points + increment * i},
        )
        for i in range(INCREMENTS)
    )


def paper(points: int = 41, first_points: int = 11, increment: int = 2) -> Recipe:
    """Garg et al.: a GPT-2 of 12 layers, width 256, 8 heads, Adam at 1e-4, the curriculum."""
    return Recipe(
        steps=500_001,
        batch=64,
        learning_rate=1e-4,
        # A budget shortens the curriculum with the training.
        stages=curriculum(first_points, increment),
        model_args={"layers": 12, "width": 256, "heads": 8, "init_std": 0.02},
        task_args={"dim": 20, "examples": points - 1},
    )
