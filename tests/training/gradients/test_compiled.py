"""Compiled programs, with a compiler that is replaced where it would take long."""

from __future__ import annotations

import pytest
import torch
from test_cuda_graph import GraphOnCPU
from torch._dynamo.utils import counters
from toys import Counting, Small, Tied, context, loss, stacked
from trainings import AGREE, finished, losses_differ_by, training

from iclbench.training.gradients.compiled import Compiled
from iclbench.training.gradients.plain import Plain


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("cls", [Small, Tied, Counting])
def test_what_is_compiled_computes_what_plain_computes(cls, group, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)
    _, replicas, batch = stacked(cls)
    expected = Plain(replicas.copy(), loss)(batch)
    program = Compiled(replicas, loss, context(), group)
    torch.testing.assert_close(program.on(replicas.copy())(batch), expected)
    torch.testing.assert_close(program(batch), expected)


def test_it_is_compiled_once(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda f: compiled.append(f) or f)
    assert training(engine="compiled").engine == "compiled"
    assert len(compiled) == 1


@pytest.mark.parametrize("replicas", [1, 3])
def test_all_batches_have_one_layout(monkeypatch, replicas):
    """Another one would be compiled again: the trial's, or that of a step."""
    layouts = []

    def watched(function):
        def call(flat, others, prompt, target):
            layouts.append([t.stride() for t in (flat, *prompt, target)])
            return function(flat, others, prompt, target)

        return call

    monkeypatch.setattr(torch, "compile", watched)
    finished(training(replicas, engine="compiled"))
    assert len(layouts) > 2
    assert all(layout == layouts[0] for layout in layouts)


def test_a_compilation_that_fails_is_one_line(monkeypatch):
    def broken(function):
        def run(*args):
            raise RuntimeError("no compiler\nand more lines")

        return run

    monkeypatch.setattr(torch, "compile", broken)
    trainer = training(engine="compiled")
    assert trainer.engine == "vmapped"
    assert trainer.note == "not compiled: RuntimeError: no compiler"
    assert losses_differ_by(trainer, training()) == 0


def test_a_compilation_that_computes_something_else_is_not_used(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: lambda *args: 1.01 * function(*args))
    trainer = training(engine="compiled")
    assert trainer.engine == "vmapped"
    assert "differ" in trainer.note


def test_compiled_training_is_not_by_threads(monkeypatch):
    torch.set_num_threads(2)
    monkeypatch.setattr(torch, "compile", lambda function: function)
    trainer = training(2, recipe={"batch": 8192}, engine="compiled")
    assert trainer.engine == "compiled"
    assert not trainer.choice.how.by_threads


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler's own
@pytest.mark.parametrize(("replicas", "graph"), [(1, False), (3, True)])
def test_compiled_and_plain_training_agree(replicas, graph):
    """Losses after 30 steps differ by at most 1e-10 in float64, by a graph's steps too."""
    trainer = training(replicas, engine="compiled")
    assert trainer.engine == "compiled", trainer.note
    if graph:
        trainer.take_step = GraphOnCPU(trainer.update, trainer)
    programs = counters["stats"]["unique_graphs"]
    assert losses_differ_by(trainer, training(replicas, engine="plain")) < AGREE
    assert counters["stats"]["unique_graphs"] == programs or not graph
