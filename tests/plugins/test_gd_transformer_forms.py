"""The free form contains the GD form, and metrics see gradient descent's matrices in it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gd_transformer_models import WIDTH, D, N, free_form, gd_form, on_the_sphere, prompt

from iclbench import EvaluationContext
from iclbench_gd_transformer.matrices import AttentionMatrices


@pytest.mark.parametrize(
    ("blocks", "kernel"), [(1, "rbf"), (1, "softmax"), (1, "linear"), (3, "rbf"), (3, "softmax")]
)  # linear attention can't single out a position, which several blocks need
def test_the_free_form_contains_the_gd_form(blocks, kernel):
    """With the matrices of Appendices C and D, and head 2 sharp, it is the same."""
    asked = prompt()
    unit = on_the_sphere(asked)
    gd, free = gd_form(blocks=blocks, kernel=kernel), free_form(blocks, kernel)
    d, w = D, WIDTH
    with torch.no_grad():
        free.embedding.copy_(gd.embedding)
        for parameter in [p for n, p in free.named_parameters() if n != "embedding"]:
            parameter.zero_()
        for k, head in enumerate(free.first):
            head.query[:d, :d] = head.key[:d, :d] = 0.7 * torch.eye(d)
            head.value[-w:, d : d + w] = torch.eye(w)
            if blocks > 1:
                head.value[-w:, d + w : d + 2 * w] = -torch.eye(w)
            head.project[-w:, -w:] = gd.step[k] * torch.eye(w)
        if blocks > 1:
            for head in free.second:
                head.query[:d, :d] = head.key[:d, :d] = 60.0 * torch.eye(d)
                head.value[d + w : d + 2 * w, d + w : d + 2 * w] = torch.eye(w)
                factor = -1.0 if kernel == "softmax" else -float(N)
                head.project[d + w : d + 2 * w, d + w : d + 2 * w] = factor * torch.eye(w)
    torch.testing.assert_close(free(unit), gd(unit), atol=1e-6, rtol=0)


def test_the_free_form_s_scale_is_a_factor_on_queries_and_keys():
    asked, model, scaled = prompt(), free_form(1), free_form(1, scale=0.5)
    with torch.no_grad():
        for matrix in (model.first[0].query, model.first[0].key):
            matrix.mul_(0.5)
    torch.testing.assert_close(scaled(asked), model(asked))


def matrices_of(model):
    context = EvaluationContext(torch.device("cpu"), torch.Generator())
    return AttentionMatrices().analysis(model, None, [], context)


def test_gradient_descent_s_matrices_pass_the_identity_tests():
    """Those of Appendix C, turned by orthogonal matrices inside each product."""
    model = free_form(1)
    (head,) = model.first
    size = D + 2 * WIDTH
    turn = [torch.linalg.qr(torch.randn(size, size, dtype=torch.float64)).Q for _ in range(2)]
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.query.copy_(2.0 * turn[0])
        head.query[:, D:] = 0
        head.key.copy_(head.query)
        head.value[:, D : D + WIDTH] = turn[1][:, :WIDTH]
        head.project[-WIDTH:] = 3.0 * turn[1][:, :WIDTH].T
    found = matrices_of(model)
    (numbers,) = found["blocks"]
    assert numbers["query_key"]["c"] == pytest.approx(4.0)
    assert numbers["value_project"]["c"] == pytest.approx(3.0)
    for product in ("query_key", "value_project"):
        assert numbers[product]["deviation"] < 1e-12
        assert numbers[product]["asymmetry"] < 1e-12
    assert numbers["query_key"]["difference"] < 1e-12
    shares = [v for name, v in numbers.items() if name.startswith("share")]
    assert shares == pytest.approx([1.0] * 4)
    maps = {one["name"]: np.array(one["values"]) for one in found["maps"]}
    np.testing.assert_allclose(maps["AᵀB"], 4.0 * np.eye(D), atol=1e-6)
    assert maps["W_Q"].shape == maps["P"].shape == (size, size)


def test_random_matrices_fail_the_identity_tests():
    found = matrices_of(free_form(2))
    assert len(found["blocks"]) == 2
    assert "ED of block 2" in [one["name"] for one in found["maps"]]
    for numbers in found["blocks"]:
        assert numbers["value_project"]["deviation"] > 0.8
        assert 0.1 < numbers["share_query"] < 0.5


def erased(kernel, sharpness, asked):
    """The largest difference of E after three blocks from E overwritten."""
    exact, found = (
        gd_form(kernel=kernel, erase=erase).states(asked)[-1][1].detach()
        for erase in (None, sharpness)
    )
    return float((found - exact).abs().max())


def test_head_2_erases_with_a_kernel_that_singles_out_the_position():
    asked = prompt()
    errors = [erased("rbf", sharpness, asked) for sharpness in (1.0, 5.0, 50.0)]
    assert errors[0] > 0.1 > errors[1] > errors[2]
    assert errors[2] < 1e-12


def test_with_softmax_head_2_fails_unless_covariates_are_normalized():
    """λ → ∞ selects the largest inner product, which is the position itself on a sphere alone."""
    asked = prompt()
    assert erased("softmax", 50.0, asked) > 0.1
    assert erased("softmax", 100.0, on_the_sphere(asked)) < 1e-6
