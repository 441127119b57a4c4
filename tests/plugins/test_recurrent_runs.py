"""Recurrent models train by `iclbench run`, with the same result however gradients are computed."""

from __future__ import annotations

import pytest
from recurrent_references import REFERENCES

from iclbench import run


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_engines_train_to_the_same_result(name, tmp_path):
    results = {}
    for engine in ("plain", "vmapped"):
        record = run(
            model=name, model_args={"layers": 2}, task="least-squares", recipe="smoke", seeds=3,
            dtype="float64", eval_prompts=64, engine=engine, out=tmp_path / engine,
        )  # fmt: skip
        assert record.training.engine == engine
        results[engine] = [seed["squared_error"].mean for seed in record.main.seeds]
    # Rounding differs, and 20 steps of training amplify it.
    assert results["vmapped"] == pytest.approx(results["plain"], rel=1e-8)
