"""A solver's module, loaded into a program of its own, computes in the dtype of its record."""

from __future__ import annotations

import pytest
import torch

from iclbench import load_model, load_task, run
from iclbench.precision import full_precision

SOLVERS = [
    ("class-frequency", "categorical"),
    ("kernel-regression", "categorical"),
    ("uniform", "mqar"),
    ("class-frequency", "mqar"),
    ("lookup", "mqar"),
    ("context-guess", "mqar"),
    ("copy-unblanked", "selective-copying"),
    ("group-product", "word-problem"),
    ("n-gram", "regbench"),
]


@pytest.mark.parametrize(("model", "task"), SOLVERS)
def test_a_solver_of_a_float64_record_answers_in_float64(model, task, tmp_path):
    record = run(model, task, dtype="float64", eval_prompts=4, out=tmp_path)
    (batch,) = load_task(task).evaluation_batches(4, 0, torch.float64)
    module = load_model(record)
    answer = module(batch.prompt)
    assert answer.dtype == torch.float64
    with full_precision(torch.float64):
        torch.testing.assert_close(answer, module(batch.prompt), rtol=1e-15, atol=0.0)
