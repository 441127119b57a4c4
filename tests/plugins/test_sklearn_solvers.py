"""Lasso and trees of scikit-learn, against closed forms on each context."""

from __future__ import annotations

import sys

import pytest
import torch

from iclbench import UsageError, load_task, run
from iclbench_solvers.sklearn_solvers import (
    BoostedTrees,
    BoostingConfig,
    Cart,
    Lasso,
    LassoConfig,
    TreeConfig,
)
from iclbench_solvers.solver import Examples

sklearn = pytest.importorskip("sklearn")

SMALL = {"dim": 3, "examples": 4}


def examples(contexts=3, count=8, dim=3):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(contexts, count, dim, generator=generator, dtype=torch.float64)
    y = torch.randn(contexts, count, 1, generator=generator, dtype=torch.float64)
    return Examples(x, y), x[:, :2] + 0.5


@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.01, 0.0001])
def test_lasso_of_orthogonal_inputs_is_soft_thresholding(alpha):
    """With XᵀX = NI the minimizer is sign(c) max(|c| − α, 0), c = Xᵀy/N."""
    given, query = examples()
    x = torch.linalg.qr(given.x)[0] * 8**0.5
    correlation = x.mT @ given.y / 8
    w = correlation.sign() * (correlation.abs() - alpha).clamp(min=0)
    answer = Lasso().answer(Examples(x, given.y), query, LassoConfig(alpha=alpha))
    torch.testing.assert_close(answer, query @ w, rtol=1e-3, atol=1e-3)


def test_a_full_tree_repeats_the_examples_and_a_stump_has_two_means():
    given, query = examples(count=4, dim=1)
    torch.testing.assert_close(
        Cart().answer(given, given.x, TreeConfig()), given.y, rtol=1e-6, atol=1e-6
    )
    stump = Cart().answer(given, given.x, TreeConfig(depth=1))
    for x, y, predicted in zip(given.x, given.y, stump, strict=True):
        order = x[:, 0].argsort()
        sorted_y = y[order, 0]
        losses = {}
        for cut in (1, 2, 3):
            parts = sorted_y[:cut], sorted_y[cut:]
            means = torch.cat([part.mean().expand(len(part)) for part in parts])
            losses[float((sorted_y - means).square().sum())] = means
        torch.testing.assert_close(predicted[order, 0], losses[min(losses)], rtol=1e-6, atol=1e-6)
    assert Cart().answer(given, query, TreeConfig()).shape == (3, 2, 1)


def test_one_boosted_tree_at_full_rate_is_a_tree_and_more_fit_better():
    given, query = examples()
    one = BoostingConfig(trees=1, depth=2, learning_rate=1.0)
    tree = Cart().answer(given, query, TreeConfig(depth=2))
    torch.testing.assert_close(BoostedTrees().answer(given, query, one), tree, rtol=1e-5, atol=1e-5)
    errors = [
        (BoostedTrees().answer(given, given.x, BoostingConfig(trees=n)) - given.y).square().mean()
        for n in (1, 10, 50)
    ]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize(
    "model", ["lasso", "cart", pytest.param("boosted-trees", marks=pytest.mark.slow)]
)
def test_every_prefix_is_answered_and_float64_is_refused_where_inputs_are_rounded(model, tmp_path):
    request = {"model": model, "task": "decision-tree", "task_args": SMALL, "out": tmp_path,
               "eval_prompts": 8}  # fmt: skip
    record = run(**request)
    curve = record.curves["prefix_error"]
    zero = run(**{**request, "model": "zero"}).curves["prefix_error"]
    assert curve.mean[0] == zero.mean[0]
    assert curve.mean[4] != zero.mean[4]
    if model == "lasso":
        run(**request, dtype="float64")
    else:
        with pytest.raises(UsageError, match="can't run in float64"):
            run(**request, dtype="float64")


def test_without_scikit_learn_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    signature = load_task("decision-tree", **SMALL).signature
    with pytest.raises(UsageError, match=r"cart needs scikit-learn: pip install"):
        Cart().build(signature, TreeConfig())
