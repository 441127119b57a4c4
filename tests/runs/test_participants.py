"""The plugins that take part: a training does not follow from those that measure."""

from __future__ import annotations

import pytest
from small_runs import TINY

from iclbench import Metric, RunSpec
from iclbench.runs.plan import resolve
from iclbench.runs.training import training_code


class Size(Metric):
    name = "size"

    def supports(self, task):
        return None

    def score(self, prediction, task, batch):
        return {"size": prediction.abs().sum(dim=(1, 2))}


def test_a_metric_s_code_does_not_train(provide):
    """After its mistake is mended, the training goes on from its checkpoint."""
    provide("metric", "size", Size, "metrics-plugin")
    plain = resolve(RunSpec(model="transformer", **TINY))
    measured = resolve(RunSpec(model="transformer", **TINY, metrics=("size",)))
    assert "metrics-plugin" in {plugin.name for plugin in measured.plugins}
    assert training_code([measured]) == training_code([plain])
    names = [plugin.name for plugin in measured.plugins]
    assert len(names) == len(set(names))


def test_an_optimizer_s_package_does_train():
    pytest.importorskip("pytorch_optimizer")
    request = {**TINY, "recipe_args": {"optimizer": "pytorch_optimizer.SOAP"}}
    plan = resolve(RunSpec(model="transformer", **request))
    plain = resolve(RunSpec(model="transformer", **TINY))
    added = training_code([plan]).keys() - training_code([plain]).keys()
    assert added in ({"pytorch_optimizer"}, {"pytorch-optimizer"})
