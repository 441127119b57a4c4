"""Mistakes of tasks and metrics are seen before anything is trained."""

from __future__ import annotations

import pytest
import torch
from small_runs import TINY

from iclbench import Metric, RunError, UsageError, run
from iclbench.training.loop import Training
from iclbench_least_squares.fixed import LeastSquares


@pytest.fixture(autouse=True)
def _nothing_is_trained(monkeypatch):
    monkeypatch.setattr(Training, "run", None)


def refused(out, error, message, **changes):
    with pytest.raises(error, match=message) as caught:
        run(model="baseconv", **{**TINY, **changes}, out=out)
    assert "\n" not in str(caught.value)
    assert not list(out.glob("*/*.json"))


def test_prompts_that_are_not_drawn_by_the_harness_are_refused(tmp_path, provide):
    class Global(LeastSquares):
        name = "global"

        def draw(self, random):
            draws = super().draw(random)
            return {**draws, "x": torch.randn_like(draws["x"])}

    provide("task", "global", Global)
    refused(tmp_path, UsageError, "differ when they are drawn again", task="global")


def test_targets_that_would_be_broadcast_are_refused(tmp_path, provide):
    class Flat(LeastSquares):
        name = "flat"

        def evaluation_batches(self, n, seed, dtype):
            batches = super().evaluation_batches(n, seed, dtype)
            return [batch._replace(target=batch.target[:, 0]) for batch in batches]

    provide("task", "flat", Flat)
    refused(tmp_path, UsageError, r"targets are \(2, 1\), not \(2, 1, 1\)", task="flat")


CHANGES = {
    "per position": (lambda e: {"squared_error": e.repeat(2)}, r"squared_error is \(\d+,\), not"),
    "mean": (lambda e: {"squared_error": e.mean()[None]}, r"squared_error is \(1,\), not"),
    "scalar": (lambda e: {"squared_error": e.mean()}, r"squared_error is \(\), not"),
    "no axis": (lambda e: {"squared_error": e, "b": e[:, None]}, r"b is \(\d+, 1\), not"),
    "name": (lambda e: {"squared_error": e, "max error": e}, "'max error' can't be the name"),
    "fraction": (lambda e: {"squared_error": e, "share": e + 2}, "share is a fraction, but not"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_values_that_no_record_could_hold_are_refused(tmp_path, provide, change):
    changed, message = CHANGES[change]

    class Faulty(LeastSquares):
        name = "faulty"
        fractions = frozenset({"share"})

        def metrics(self, prediction, batch):
            return changed(super().metrics(prediction, batch)["squared_error"])

    provide("task", "faulty", Faulty)
    refused(tmp_path, RunError, message, task="faulty")


def test_a_metric_of_another_shape_is_refused(tmp_path, provide):
    class Wide(Metric):
        name = "wide"

        def supports(self, task):
            return None

        def score(self, prediction, task, batch):
            return {"wide": prediction[:, 0]}

    provide("metric", "wide", Wide)
    refused(tmp_path, RunError, r"metric wide: wide is \(2, 1\), not \(2,\)", metrics=["wide"])
