"""Fixed pools of training prompts, of every kind of task that arranges them."""

from __future__ import annotations

import pytest
import torch

from iclbench import load_task


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("mqar", {"vocabulary": 64}), ("mqar-continuous", {"vocabulary": 64}),
        ("in-context-recall", {}), ("noisy-recall", {}), ("fuzzy-recall", {}),
        ("selective-copying", {}), ("compression", {}), ("memorization", {}),
        ("word-problem", {"group": "s3"}), ("categorical", {}), ("categorical-quadrants", {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_pool_is_arranged_in_parts_to_the_same_bits(name, args, dtype, monkeypatch):
    task = load_task(name, pool=10, **args)
    whole = task.round_and_arrange(task.pool_draws, dtype)
    arrange, rows = task.arrange, []

    def arrange_and_count(draws):
        rows.append({len(values) for values in draws.values()})
        return arrange(draws)

    monkeypatch.setattr("iclbench.api.pool.ROWS", 4)
    monkeypatch.setattr(task, "arrange", arrange_and_count)
    pool = task.pooled(torch.arange(10), dtype)
    # Comparing all pairs of positions of many long prompts at once would fill the memory.
    assert rows == [{4}, {4}, {2}]
    for expected, field in zip(whole.prompt, pool.prompt, strict=True):
        assert torch.equal(field, expected)
    assert torch.equal(pool.target, whole.target)
