"""Compiled programs; fast tests replace the compiler."""

from __future__ import annotations

import pytest
import torch
from test_cuda_graph import GraphOnCPU
from torch._dynamo.utils import counters
from toys import Counting, Small, Tied, context, loss, stacked
from trainings import AGREE, losses_differ_by, new_training

from iclbench.training.gradients.compiled import Compiled
from iclbench.training.gradients.plain import Plain


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("cls", [Small, Tied, Counting])
def test_losses_and_gradients_match_plain(cls, group, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)
    _, replicas, batch = stacked(cls)
    expected = Plain(replicas.copy(), loss)(batch)
    program = Compiled(replicas, loss, context(), group)
    torch.testing.assert_close(program.on(replicas.copy())(batch), expected)
    torch.testing.assert_close(program(batch), expected)


def test_program_is_compiled_once(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda f: compiled.append(f) or f)
    assert new_training(engine="compiled").engine == "compiled"
    assert len(compiled) == 1


def test_failed_compilation_is_reported_in_one_line(monkeypatch):
    def broken(function):
        def run(*args):
            raise RuntimeError("no compiler\nand more lines")

        return run

    monkeypatch.setattr(torch, "compile", broken)
    training = new_training(engine="compiled")
    assert training.engine == "vmapped"
    assert training.note == "not compiled: RuntimeError: no compiler"
    assert losses_differ_by(training, new_training()) == 0


def test_wrong_compilation_is_not_used(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: lambda *args: 1.01 * function(*args))
    training = new_training(engine="compiled")
    assert training.engine == "vmapped"
    assert "differ" in training.note


def test_compiled_training_uses_no_threads(monkeypatch):
    torch.set_num_threads(2)
    monkeypatch.setattr(torch, "compile", lambda function: function)
    training = new_training(2, recipe={"batch": 8192}, engine="compiled")
    assert training.engine == "compiled"
    assert not training.choice.how.by_threads


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # warnings of the compiler
@pytest.mark.parametrize(("replicas", "graph"), [(1, False), (3, True)])
def test_compiled_and_plain_training_agree(replicas, graph):
    """Losses over 30 steps differ by at most 1e-10 in float64, also with a graph's steps."""
    training = new_training(replicas, engine="compiled")
    assert training.engine == "compiled", training.note
    if graph:
        training.take_step = GraphOnCPU(training.update, training)
        training.data.at_once = True
    programs = counters["stats"]["unique_graphs"]
    assert losses_differ_by(training, new_training(replicas, engine="plain")) < AGREE
    assert counters["stats"]["unique_graphs"] == programs or not graph
