"""Arguments of runs that take less than a second."""

from __future__ import annotations

TINY = (
    "--task-args", "dim=2,examples=4", "--recipe", "smoke", "--seeds", "2", "--eval-prompts", "64"
)  # fmt: skip


MODEL, TASK = ("--model", "transformer"), ("--task", "least-squares")
