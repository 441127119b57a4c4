"""A job leaves nothing of earlier programs on a GPU."""

from __future__ import annotations

import gc
import weakref

import torch

from iclbench.runs.settings import Settings
from iclbench.sweeps.jobs import forget_programs


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
