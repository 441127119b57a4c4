"""The two forms for classes: one contains the other, their matrices, and erasing E."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gd_transformer_models import WIDTH, D, N, free_form, gd_form, make_prompt, on_the_sphere

from iclbench import EvaluationContext
from iclbench_gd_transformer.architecture import FunctionalGDConfig
from iclbench_gd_transformer.config import GDTransformerConfig
from iclbench_gd_transformer.matrices import AttentionMatrices
from iclbench_gd_transformer.solver import FunctionalGDSolverConfig


@pytest.mark.parametrize(
    ("blocks", "kernel"), [(1, "rbf"), (1, "softmax"), (1, "linear"), (3, "rbf"), (3, "softmax")]
)  # several blocks must single out a position, which linear attention can't
def test_the_free_form_contains_the_gd_form(blocks, kernel):
    """With the matrices of Appendices C and D and a sharp head 2, both are equal."""
    prompt = make_prompt()
    unit = on_the_sphere(prompt)
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


def test_the_scale_of_the_free_form_multiplies_queries_and_keys():
    prompt, model, scaled = make_prompt(), free_form(1), free_form(1, scale=0.5)
    with torch.no_grad():
        for matrix in (model.first[0].query, model.first[0].key):
            matrix.mul_(0.5)
    torch.testing.assert_close(scaled(prompt), model(prompt))


def matrices_of(model):
    context = EvaluationContext(torch.device("cpu"), torch.Generator())
    return AttentionMatrices().analysis(model, None, [], context)


def test_gradient_descent_s_matrices_pass_the_identity_tests():
    """The matrices of Appendix C, with orthogonal matrices inserted into both products."""
    model = free_form(1)
    (head,) = model.first
    size = D + 2 * WIDTH
    rotations = [torch.linalg.qr(torch.randn(size, size, dtype=torch.float64)).Q for _ in range(2)]
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.query.copy_(2.0 * rotations[0])
        head.query[:, D:] = 0
        head.key.copy_(head.query)
        head.value[:, D : D + WIDTH] = rotations[1][:, :WIDTH]
        head.project[-WIDTH:] = 3.0 * rotations[1][:, :WIDTH].T
    analysis = matrices_of(model)
    (numbers,) = analysis["blocks"]
    assert numbers["query_key"]["c"] == pytest.approx(4.0)
    assert numbers["value_project"]["c"] == pytest.approx(3.0)
    for product in ("query_key", "value_project"):
        assert numbers[product]["deviation"] < 1e-12
        assert numbers[product]["asymmetry"] < 1e-12
    assert numbers["query_key"]["difference"] < 1e-12
    shares = [v for name, v in numbers.items() if name.startswith("share")]
    assert shares == pytest.approx([1.0] * 4)
    maps = {item["name"]: np.array(item["values"]) for item in analysis["maps"]}
    np.testing.assert_allclose(maps["AᵀB"], 4.0 * np.eye(D), atol=1e-6)
    assert maps["W_Q"].shape == maps["P"].shape == (size, size)


def test_random_matrices_fail_the_identity_tests():
    analysis = matrices_of(free_form(2))
    assert len(analysis["blocks"]) == 2
    assert "ED of block 2" in [item["name"] for item in analysis["maps"]]
    for numbers in analysis["blocks"]:
        assert numbers["value_project"]["deviation"] > 0.8
        assert 0.1 < numbers["share_query"] < 0.5


def erasing_error(kernel, sharpness, prompt):
    """The largest difference between erasing and overwriting E, after three blocks."""
    overwritten, erased = (
        gd_form(kernel=kernel, erase=erase).states(prompt)[-1][1].detach()
        for erase in (None, sharpness)
    )
    return float((erased - overwritten).abs().max())


def test_head_2_erases_with_a_kernel_that_singles_out_the_position():
    prompt = make_prompt()
    errors = [erasing_error("rbf", sharpness, prompt) for sharpness in (1.0, 5.0, 50.0)]
    assert errors[0] > 0.1 > errors[1] > errors[2]
    assert errors[2] < 1e-12


def test_head_2_with_softmax_needs_normalized_covariates():
    """λ → ∞ selects the largest inner product: the position itself only if all norms are equal."""
    prompt = make_prompt()
    assert erasing_error("softmax", 50.0, prompt) > 0.1
    assert erasing_error("softmax", 100.0, on_the_sphere(prompt)) < 1e-6


def test_a_degree_needs_the_kernel_that_has_one():
    for config in (GDTransformerConfig, FunctionalGDConfig, FunctionalGDSolverConfig):
        assert config(kernel="polynomial", degree=3).degree == 3
        with pytest.raises(ValueError, match="degree is for kernel=polynomial, not rbf"):
            config(kernel="rbf", degree=3)
