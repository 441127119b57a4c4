"""Gradient accumulation and autocast."""

from __future__ import annotations

import pytest
import torch

from iclbench import Recipe, UsageError, load_task, run
from iclbench.api.config import parse_config
from iclbench.training.loop import Replica, Training
from iclbench_transformer.architecture import Transformer, TransformerConfig

TASK = load_task("least-squares", dim=2, examples=3)


def training(replicas=2, dtype=torch.float64, **recipe):
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    try:
        modules = [
            Transformer().build(TASK.signature, TransformerConfig(layers=1, width=8))
            for _ in range(replicas)
        ]
    finally:
        torch.set_default_dtype(torch.float32)
    return Training(
        modules,
        [Replica(seed, 1e-3) for seed in range(replicas)],
        TASK,
        Recipe(steps=4, batch=12, **recipe),
        device=torch.device("cpu"),
        dtype=dtype,
    )


@pytest.mark.parametrize("parts", [2, 3, 12])
def test_parts_of_a_batch_give_the_gradient_of_the_whole(parts):
    whole, divided = training(), training(accumulate=parts)
    batch = whole.data.draw(whole.data.generators, 1)
    single = type(batch)(type(batch.prompt)(*(t[:, 0] for t in batch.prompt)), batch.target[:, 0])
    for a, b in zip(whole._gradients(single), divided._gradients(single), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


def test_autocast_is_near_and_not_equal_and_leaves_the_parameters_dtype():
    plain, low = training(dtype=torch.float32), training(dtype=torch.float32, autocast="bfloat16")
    a, b = plain.run(None, lambda *_: None), low.run(None, lambda *_: None)
    assert a.curve[-1] != b.curve[-1]
    assert b.curve[-1] == pytest.approx(a.curve[-1], rel=0.05)
    assert {t.dtype for t in b.states[0].values()} == {torch.float32}


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"accumulate": 5}, "no 5 equal parts"),
        ({"autocast": "float16"}, "autocast"),
    ],
)
def test_what_does_not_fit_is_refused(args, reason):
    with pytest.raises(UsageError, match=reason):
        parse_config(Recipe, {"steps": 1, "batch": 12, **args}, "recipe")


def test_a_run_that_does_not_use_them_keeps_its_id(tmp_path):
    record = run(model="transformer", task="least-squares", recipe="smoke", seeds=1, out=tmp_path,
                 recipe_args={"steps": 1}, eval_prompts=8)  # fmt: skip
    assert not {"accumulate", "autocast"} & set(record.spec.recipe_args)
