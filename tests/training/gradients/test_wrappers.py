"""Gradient accumulation and autocast around a program."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from toys import Small, Static, context, loss, stacked
from trainings import finished, training

from iclbench.training.gradients.plain import Plain
from iclbench.training.gradients.vmapped import LinearAsProduct, Vmapped
from iclbench.training.gradients.wrappers import Accumulated, Autocast


@pytest.mark.parametrize("static", [False, True])
def test_parts_of_a_batch_give_the_gradient_of_the_whole(static):
    _, replicas, batch = stacked(Small)
    replicas = replicas.copy(torch.float64)
    batch = batch._replace(
        prompt=type(batch.prompt)(batch.prompt.tokens.double()), target=batch.target.double()
    )
    program = Plain(replicas, loss)
    divided = Accumulated(Static(program) if static else program, 5)
    torch.testing.assert_close([*divided(batch)], [*program(batch)], rtol=1e-12, atol=1e-14)


def test_autocast_is_on_while_the_program_runs():
    seen = []

    class Watching:
        name = "watching"

        def __call__(self, batch):
            seen.append(torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else 0)
            return batch

    program = Autocast(Watching(), torch.device("cpu"), torch.bfloat16)
    program(None)
    assert program.name == "watching"
    assert seen == [torch.bfloat16]
    assert not torch.is_autocast_enabled("cpu")


class FullPrecision(Small):
    """Stays out of autocast."""

    def forward(self, prompt):
        with torch.autocast("cpu", enabled=False):
            return super().forward(prompt)


@pytest.mark.parametrize("kind", ["plain", "vmapped"])
def test_what_a_model_keeps_out_of_autocast_goes_backward_in_full_precision(kind):
    _, replicas, batch = stacked(FullPrecision)
    program = Plain(replicas, loss)
    if kind == "vmapped":
        program = Vmapped(replicas, loss, context(), 3)
    expected = [result.clone() for result in program(batch)]
    under_autocast = Autocast(program, torch.device("cpu"), torch.bfloat16)
    torch.testing.assert_close([*under_autocast(batch)], expected, rtol=1e-6, atol=1e-7)


def test_a_bias_does_not_undo_autocast_in_a_vmapped_program():
    weight, bias, x = torch.randn(3, 4), torch.randn(3), torch.randn(5, 4)
    with torch.autocast("cpu", torch.bfloat16), LinearAsProduct():
        result = nn.functional.linear(x, weight, bias)
    assert result.dtype == torch.bfloat16


def test_training_under_autocast_is_near_and_keeps_the_dtype_of_parameters():
    results = [
        finished(training(2, dtype=torch.float32, recipe={"steps": 4, "batch": 12, **more}))
        for more in ({}, {"autocast": "bfloat16"})
    ]
    exact, low = (torch.tensor(result.curve[-1]) for result in results)
    assert not torch.equal(exact, low)
    torch.testing.assert_close(low, exact, rtol=0.05, atol=0)
    assert {t.dtype for t in results[1].states[0].values()} == {torch.float32}
