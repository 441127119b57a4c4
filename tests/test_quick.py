"""The promises of the recipe `quick`, at full length."""

from __future__ import annotations

import pytest

from iclbench import run


@pytest.fixture(scope="module")
def averaging(tmp_path_factory):
    return run(model="averaging", task="least-squares", out=tmp_path_factory.mktemp("averaging"))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["transformer", "baseconv"])
def test_a_trained_model_is_below_averaging_and_above_the_floor(tmp_path, averaging, model):
    record = run(model=model, task="least-squares", recipe="quick", seeds=1, out=tmp_path)
    bar = averaging.metrics["squared_error"]
    for seed in record.main.seeds:
        errors = seed["squared_error"]
        assert errors.mean < bar.mean
        assert errors.median < bar.median
        assert errors.median > record.floor["squared_error"].median
    curve = record.training.curve
    assert len(curve) >= 50
    assert all(last < first for first, last in zip(curve[0], curve[-1], strict=True))
