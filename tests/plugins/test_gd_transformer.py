"""The GD transformer: settings, kernels, masks and training."""

from __future__ import annotations

import math

import pytest
import torch
from gd_transformer_models import (
    KERNELS,
    WIDTH,
    C,
    Q,
    free_form,
    gd_form,
    make_prompt,
    on_the_sphere,
)
from hypothesis import given
from hypothesis import strategies as st

from iclbench import UsageError, run, training_batch
from iclbench_categorical.anchors import Anchors
from iclbench_gd_transformer.architecture import (
    FunctionalGDConfig,
    GDTransformer,
)
from iclbench_gd_transformer.config import GDTransformerConfig
from iclbench_gd_transformer.kernels import attention, expectation


def test_normalize_equals_normalizing_the_prompt():
    prompt = make_prompt()
    for form in (gd_form, free_form):
        normalizing, plain = form(normalize=True), form()
        torch.testing.assert_close(normalizing(prompt), plain(on_the_sphere(prompt)))


def test_metrics_refuse_other_models_and_tasks(tmp_path):
    gd = {"model": "gd-transformer", "task": "categorical", "recipe": "smoke", "out": tmp_path}
    with pytest.raises(UsageError, match="needs gd-transformer with form=free"):
        run(**gd, metrics=("attention-matrices",))
    with pytest.raises(UsageError, match="needs gd-transformer with form=gd"):
        run(**gd, model_args={"form": "free"}, metrics=("descent-error",))
    with pytest.raises(UsageError, match="asks for the class"):
        run(model="transformer", task="least-squares", metrics=("descent-error",), out=tmp_path)


def test_queries_do_not_see_each_other():
    prompt = make_prompt()
    for model in (gd_form(), gd_form(erase=3.0), free_form(1), free_form(3)):
        together = model(prompt)
        for q in range(Q):
            single = model(prompt._replace(query=prompt.query[:, q : q + 1]))
            torch.testing.assert_close(together[:, q : q + 1], single)


@given(seed=st.integers(0, 99))
def test_the_expectation_is_the_mean_under_the_softmax(seed):
    generator = torch.Generator().manual_seed(seed)
    f = torch.randn(2, 3, WIDTH, generator=generator, dtype=torch.float64)
    W = torch.randn(C, WIDTH, generator=generator, dtype=torch.float64)
    p = (f @ W.T).softmax(dim=2)
    expected = (p.unsqueeze(3) * W).sum(dim=2)
    torch.testing.assert_close(expectation(f, W), expected)


def test_masked_keys_have_no_weight():
    x = torch.randn(1, 4, 2, dtype=torch.float64)
    mask = torch.tensor([[True, True, False, False]] * 4)
    for kernel in KERNELS:
        weights = attention(kernel, x, x, mask)
        torch.testing.assert_close(weights[..., :2], attention(kernel, x, x[:, :2]))
        assert (weights[..., 2:] == 0).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_masked_key_may_overflow(kernel):
    """Its weight is 0, and so is its gradient, not NaN."""
    x = torch.randn(1, 4, 2, dtype=torch.float64)
    huge = torch.tensor([1.0, 1.0, 1e100, 1e100], dtype=torch.float64)[:, None]
    keys = (huge * x).requires_grad_()
    mask = torch.tensor([[True, True, False, False]] * 4)
    weights = attention(kernel, x, keys, mask, degree=4)
    torch.testing.assert_close(weights[..., :2], attention(kernel, x, x[:, :2], degree=4))
    assert (weights[..., 2:] == 0).all()
    (gradient,) = torch.autograd.grad(weights.square().sum(), keys)
    assert gradient.isfinite().all()
    assert (gradient[:, 2:] == 0).all()


def test_the_construction_uses_the_task_s_embeddings():
    task = Anchors(Anchors.Config())
    construction = GDTransformer.constructions["functional-gd"]
    config, state = construction.build(task.signature, FunctionalGDConfig(blocks=4, step=2.0), task)
    model = GDTransformer().build(task.signature, GDTransformerConfig(**config)).double()
    model.load_state_dict(state)
    assert torch.equal(model.embedding, task.parameters["embedding"])
    assert model.step.tolist() == [2.0] * 4


def test_the_construction_takes_its_scale_from_training_contexts():
    construction = GDTransformer.constructions["functional-gd"]
    # The median distance of points from N(0, I), about √(2d).
    for dim in (10, 40):
        task = Anchors(Anchors.Config(dim=dim))
        _, state = construction.build(task.signature, FunctionalGDConfig(), task)
        assert float(state["log_scale"].exp()) == pytest.approx((2 * dim) ** -0.5, rel=0.1)
    _, state = construction.build(task.signature, FunctionalGDConfig(scale=0.3), task)
    assert float(state["log_scale"].exp()) == pytest.approx(0.3)


def test_settings_added_later_do_not_change_ids():
    # At their defaults they are left out of the dump, and so of the run's id.
    before = {"form", "blocks", "kernel", "heads", "embedding", "scale", "erase"}
    assert set(GDTransformerConfig().model_dump(mode="json")) == before
    assert set(GDTransformerConfig(bias=True).model_dump(mode="json")) == before | {"bias"}


@pytest.mark.parametrize("form", ["gd", "free"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("blocks", [1, 3])
def test_untrained_models_are_finite_in_float32(form, kernel, blocks):
    """No kernel or gradient overflows on the task's covariates, N(0, I) in d = 10."""
    task = Anchors(Anchors.Config())
    batch = training_batch(task, 256, torch.Generator().manual_seed(0), torch.float32)
    torch.manual_seed(0)
    config = GDTransformerConfig(form=form, kernel=kernel, blocks=blocks)
    model = GDTransformer().build(task.signature, config)
    loss = task.loss(model(batch.prompt), batch.target).mean()
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("form", ["gd", "free"])
def test_both_forms_learn(tmp_path, form):
    record = run(
        model="gd-transformer",
        model_args={"form": form, "kernel": "softmax"},
        task="categorical-quadrants",
        task_args={"examples": 20},
        recipe="quick",
        recipe_args={"steps": 200, "learning_rate": 1e-2},
        eval_prompts=512,
        seeds=2,
        out=tmp_path,
    )
    assert record.metrics["nll"].mean < math.log(20)
    assert record.training.replicas == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"form": "free", "erase": 3.0}, "form=free has no erase"),
        ({"form": "free", "heads": 2}, "leave heads out"),
        ({"form": "free", "bias": True}, "form=free has no bias"),
        ({"form": "free", "projection": "diagonal"}, "form=free has no projection"),
        ({"erase": 3.0}, "erase acts between blocks"),
        ({"degree": 0}, "greater than or equal to 1"),
        ({"kernel": "cosine"}, "linear"),
    ],
)
def test_unsupported_settings_are_refused(args, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        run(model="gd-transformer", task="categorical", model_args=args, out=tmp_path)
    with pytest.raises(UsageError, match="answers class, not query"):
        run(model="gd-transformer", task="least-squares", out=tmp_path)
    with pytest.raises(UsageError, match="embedding must have 25 rows"):
        run(model="functional-gd", task="categorical", model_args={"embedding": [[1.0]]},
            out=tmp_path)  # fmt: skip
