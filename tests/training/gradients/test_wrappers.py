"""Gradient accumulation and autocast around a program."""

from __future__ import annotations

import pytest
import torch
from toys import Small, loss, stacked
from trainings import finished, new_training

from iclbench.training.gradients.plain import Plain
from iclbench.training.gradients.wrappers import Accumulated, Autocast


class Static:
    """Returns its results in the same memory at every call, like a captured program."""

    name = "static"

    def __init__(self, program):
        self.program, self.results = program, None

    def __call__(self, batch):
        results = self.program(batch)
        if self.results is None:
            self.results = [t.clone() for t in results]
        for kept, value in zip(self.results, results, strict=True):
            kept.copy_(value)
        return self.results


@pytest.mark.parametrize("static", [False, True])
def test_accumulated_parts_give_the_gradient_of_the_batch(static):
    _, replicas, batch = stacked(Small)
    replicas = replicas.copy(torch.float64)
    batch = batch._replace(
        prompt=type(batch.prompt)(batch.prompt.tokens.double()), target=batch.target.double()
    )
    program = Plain(replicas, loss)
    divided = Accumulated(Static(program) if static else program, 5)
    torch.testing.assert_close([*divided(batch)], [*program(batch)], rtol=1e-12, atol=1e-14)


def test_autocast_is_on_while_the_program_runs():
    dtypes = []

    class Watching:
        name = "watching"

        def __call__(self, batch):
            dtypes.append(torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu"))
            return batch

    program = Autocast(Watching(), torch.device("cpu"), torch.bfloat16)
    program(None)
    assert program.name == "watching"
    assert dtypes == [torch.bfloat16]
    assert not torch.is_autocast_enabled("cpu")


def test_training_under_autocast_is_close_and_keeps_the_dtype_of_parameters():
    results = [
        finished(new_training(2, dtype=torch.float32, recipe={"steps": 4, "batch": 12, **more}))
        for more in ({}, {"autocast": "bfloat16"})
    ]
    exact, low = (torch.tensor(result.curve[-1]) for result in results)
    assert not torch.equal(exact, low)
    torch.testing.assert_close(low, exact, rtol=0.05, atol=0)
    assert {t.dtype for t in results[1].states[0].values()} == {torch.float32}
