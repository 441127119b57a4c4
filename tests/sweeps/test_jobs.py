"""A job leaves nothing of earlier programs on a GPU, and a plugin that exits fails alone."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from iclbench import sweep
from iclbench.runs.settings import Settings
from iclbench.sweeps.jobs import forget_programs
from iclbench_solvers.simple import Averaging, Zero


class Circular:
    def __init__(self):
        self.step = self.take

    def take(self):
        pass


def test_what_an_earlier_training_holds_on_a_gpu_is_freed(monkeypatch):
    gc.disable()
    try:
        earlier = weakref.ref(Circular())
        forget_programs(Settings())
        assert earlier() is not None, "a CPU does not wait for the collector"
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        forget_programs(Settings())
        assert earlier() is None
    finally:
        gc.enable()


def test_compiled_code_of_earlier_programs_is_forgotten(monkeypatch):
    resets = []
    monkeypatch.setattr(torch._dynamo, "reset", lambda: resets.append(1))
    forget_programs(Settings(engine="vmapped"))
    assert not resets
    forget_programs(Settings(engine="compiled"))
    assert resets


def leave(*_):
    raise SystemExit(0)


@pytest.mark.parametrize("method", ["supports", "build"])
def test_a_plugin_that_exits_fails_its_own_cell(tmp_path, monkeypatch, method):
    """It exits while the cell is planned, or while it runs."""
    monkeypatch.setattr(Averaging, method, leave)
    defaults = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 8}
    result = sweep({"defaults": defaults, "grid": [{"model": ["averaging", "zero"]}]}, out=tmp_path)
    assert [record.spec.model for record in result.records] == [Zero.name]
    assert [failure.reason for failure in result.failures] == ["SystemExit: 0"]
