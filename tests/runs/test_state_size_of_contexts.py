"""The linear transformer and the GD transformer tell what of a context their answers depend on."""

from __future__ import annotations

import pytest
import torch
from gd_transformer_models import WIDTH, D, N, free_form, gd_form
from linear_transformer_models import make_model as make_system_model
from linear_transformer_models import make_task

from iclbench import Regression, Signature, Text, load_task
from iclbench.runs.state_size import state_sizes
from iclbench_gd_transformer.architecture import GDTransformer
from iclbench_gd_transformer.config import GDTransformerConfig
from iclbench_linear_transformer.architecture import LinearTransformer, LinearTransformerConfig


def regression_model(dim, examples, **config):
    torch.manual_seed(0)
    signature = load_task("least-squares", dim=dim, examples=examples).signature
    return LinearTransformer().build(signature, LinearTransformerConfig(**config)).double()


@pytest.mark.parametrize("heads", [1, 2])
def test_the_sum_of_products_of_tokens_decides_the_answer(heads):
    """The numbers that are counted suffice: layers applied to Σ eⱼeⱼᵀ and the query alone."""
    dim, layers = 3, 2
    model = regression_model(dim, 20, layers=layers, heads=heads, init_std=0.2)
    generator = torch.Generator().manual_seed(0)
    x, query, y = (
        torch.randn(1, *shape, generator=generator, dtype=torch.float64)
        for shape in ((20, dim), (1, dim), (20, 1))
    )
    context = torch.cat([x, y], dim=2)[0]
    total, token = context.mT @ context, torch.cat([query[0, 0], torch.zeros(1)]).double()
    assert state_sizes(model, 21) == (total.numel(),) * layers
    for layer in model.layers:
        change = sum(
            matrix(P, dim) @ total @ matrix(Q, dim) for P, Q in zip(*layer.blocks(), strict=True)
        )
        step = torch.eye(dim + 1, dtype=torch.float64) + change
        total, token = step @ total @ step.mT, step @ token
    answer = model(Regression(x, x, y, query)).item()
    assert answer == pytest.approx(token[-1].item(), rel=1e-12)


def matrix(blocks, dim):
    """The matrix (dim + 1, dim + 1) that the blocks of one vector part and a scalar stand for."""
    full = torch.zeros(dim + 1, dim + 1, dtype=blocks.dtype)
    full[:dim, :dim] = blocks[0, 0] * torch.eye(dim)
    full[:dim, dim], full[dim, :dim], full[dim, dim] = blocks[0, 1], blocks[1, 0], blocks[1, 1]
    return full.detach()


def test_a_short_context_is_kept_itself():
    # The query is read by no token.
    assert state_sizes(regression_model(5, 2), 3) == (2 * 6,) * 4
    # N = 3 rows of four vectors and a scalar; of form=full, of the row, b and K numbers.
    assert state_sizes(make_system_model(make_task(sizes=3), layers=2), 4) == (3 * 13,) * 2
    full = make_system_model(make_task(sizes=3), layers=2, form="full", embedding=5)
    assert state_sizes(full, 4) == (3 * 9,) * 2


POLYNOMIAL = 10  # monomials of degree 2 of (1, x) with D = 3


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"kernel": "rbf"}, (N * (D + WIDTH), N * WIDTH, N * WIDTH)),
        ({"kernel": "linear"}, (D * WIDTH,) * 3),
        ({"kernel": "linear", "bias": True, "heads": 2}, ((2 * D + 1) * WIDTH,) * 3),
        ({"kernel": "linear", "erase": 1.0}, (N * (D + 2 * WIDTH), 2 * N * WIDTH, 2 * N * WIDTH)),
        ({"kernel": "polynomial", "blocks": 1}, (POLYNOMIAL * WIDTH,)),
        ({"kernel": "polynomial", "blocks": 1, "heads": 2}, (N * (D + WIDTH),)),
    ],
)
def test_gradient_descent_keeps_its_sums_or_its_context(options, sizes):
    assert state_sizes(gd_form(**options), N) == sizes


def test_the_free_form_keeps_keys_and_values_of_every_head():
    one, two = D + 2 * WIDTH, D + 3 * WIDTH
    assert state_sizes(free_form(), N) == (2 * N * one,)
    assert state_sizes(free_form(blocks=2), N) == (2 * 2 * N * two,) * 2
    assert state_sizes(free_form(kernel="linear"), 100) == (one * one,)


def test_on_text_the_decoder_s_cache_is_the_state():
    read = tuple(range(7))
    signature = Signature(Text, "token", 7, 0, 11, read, causal=True, vocabulary=11)
    model = GDTransformer().build(signature, GDTransformerConfig(embedding=6))
    decoder = model.decoder()
    decoder.advance(torch.zeros(1, 5, dtype=torch.long))
    assert state_sizes(model, 5) == tuple(values.numel() for values in decoder.values)
    exact = GDTransformer().build(signature, GDTransformerConfig(embedding=6, blocks=2))
    assert state_sizes(exact, 5) is None
