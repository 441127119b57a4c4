"""Engines agree; a step has few operators and waits for nothing; groups of replicas."""

from __future__ import annotations

import pytest
import torch
from iclbench.training.engine import Eager, Graph, batch_of, make_engine
from iclbench.training.grouping import (
    SLICE_ELEMENTS,
    Operators,
    cpu_group,
    cpu_slices,
    elements,
    fitting_group,
)
from torch._dynamo.utils import counters

from iclbench import Recipe, UsageError
from iclbench.api.config import parse_config
from iclbench.api.prompts import Batch, map_tensors
from iclbench.api.spec import RunSpec
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.training.loop import Replica, Training
from iclbench.training.replicas import Replicas

CPU = torch.device("cpu")
#: Largest relative difference of losses after 30 steps by two engines, float64.
AGREE = 1e-10


def training(
    replicas=3, model="transformer", device=CPU, dtype=torch.float64, engine="auto", layers=1,
    recipe=None, **model_args
):  # fmt: skip
    values = {"steps": 30, "batch": 6, "chunk": 5, "schedule": "cosine", "clip": 1.0}
    request = {
        "model": model,
        "task": "least-squares-prefixes",
        "task_args": {"dim": 2, "examples": 4},
        "model_args": {"layers": layers, "width": 8, **model_args},
        "recipe": "smoke",
        "recipe_args": {**values, **(recipe or {})},
        "seeds": replicas,
        "dtype": str(dtype).removeprefix("torch."),
    }
    plan = resolve(parse_config(RunSpec, request, "test"))
    modules = [initial_module(plan, seed).to(dtype) for seed in range(replicas)]
    who = [Replica(seed, 1e-2 * (seed + 1)) for seed in range(replicas)]
    return Training(modules, who, plan.task, plan.recipe, device=device, dtype=dtype, engine=engine)


def finished(made):
    return made.run(None, lambda step, loss: None)


def close(a, b, tolerance=AGREE):
    assert a.curve_steps == b.curve_steps
    assert torch.allclose(torch.tensor(a.curve), torch.tensor(b.curve), rtol=tolerance, atol=0)


class GraphOnCPU(Graph):
    """The graph's buffers and its one step, replayed by calling it; nothing is captured."""

    def _warm_up(self, count):
        self._take(count)

    def _captured(self):
        body = self._one_step

        class Replay:
            def replay(self):
                body()

        return Replay()


@pytest.mark.parametrize(
    "recipe",
    [
        {"clip": 0.1},
        {"optimizer": "adamw", "warmup": 7},
        {"optimizer": "sgd", "optimizer_args": {"momentum": 0.9}},
        {"gradient_memory": 0.9},
        {"steps": 28},
    ],
    ids=str,
)
def test_the_step_that_a_graph_captures_is_the_eager_step(recipe):
    """Batch, factor and step are read from buffers, and all state changes in place."""
    expected = finished(training(recipe=recipe))
    made = training(recipe=recipe)
    made.engine = GraphOnCPU(Eager(made))
    state = [made.replicas.flat, made.alive, *made.optimizer.buffers.values()]
    state += [] if made.mean_gradient is None else [made.mean_gradient]
    places = [t.data_ptr() for t in state]
    found = finished(made)
    assert made.engine.graph is not None
    close(found, expected)
    now = [made.replicas.flat, made.alive, *made.optimizer.buffers.values()]
    now += [] if made.mean_gradient is None else [made.mean_gradient]
    assert [t.data_ptr() for t in now] == places


def test_a_graph_notes_when_a_replica_diverges():
    recipe = {"optimizer": "sgd", "schedule": "constant", "clip": None}
    expected, found = training(recipe=recipe), training(recipe=recipe)
    for made in (expected, found):
        made.rates[1] = 1e30
    found.engine = GraphOnCPU(Eager(found))
    a, b = finished(expected), finished(found)
    assert a.diverged_at == b.diverged_at
    assert a.diverged_at[1] is not None


def test_what_fails_to_be_captured_goes_on_step_by_step(capsys):
    class Failing(GraphOnCPU):
        def _captured(self):
            raise RuntimeError("operation not permitted when stream is capturing")

    made = training()
    made.engine = Failing(Eager(made))
    found = finished(made)
    assert found.engine == "eager"
    assert "not permitted" in found.note
    assert len(capsys.readouterr().err.splitlines()) == 1
    close(found, finished(training()))


def operators_of_a_step(layers, replicas, alone=True):
    made = training(replicas, layers=layers, dtype=torch.float32)
    assert made.replicas.together == replicas
    batch = batch_of(made.trial(1), 0)
    made.replicas.template.train()
    made.take_step(batch, 1.0, 1)  # what is made once is not counted
    for bound in made.replicas._modules.values():
        for part in bound.module.modules():
            if hasattr(part, "unmapped"):
                assert part.unmapped
                part.unmapped = alone
    with Operators() as seen:
        made.take_step(batch, 1.0, 2)
    return seen


@pytest.mark.parametrize(
    ("layers", "replicas", "alone", "most"),
    [
        (2, 1, True, 100),
        (12, 1, True, 390),
        # As on a GPU, where attention is written out.
        (2, 1, False, 116),
        (12, 1, False, 486),
        (2, 4, True, 166),
        (12, 4, True, 736),
    ],
)
def test_a_step_has_few_operators_and_waits_for_nothing(layers, replicas, alone, most):
    """Forward, backward, clip, Adam and the flags of the transformer."""
    seen = operators_of_a_step(layers, replicas, alone)
    assert seen.total <= most
    waits = {"_local_scalar_dense", "item", "nonzero", "is_nonzero"}
    assert not waits & set(seen.counts)


def test_no_operator_is_per_replica():
    assert operators_of_a_step(2, 3).counts == operators_of_a_step(2, 6).counts


@pytest.mark.parametrize("model", ["transformer", "baseconv"])
@pytest.mark.parametrize("group", [1, 2])
def test_groups_of_replicas_give_the_same_losses(model, group):
    expected = finished(training(model=model))
    assert expected.replicas == 3
    made = training(model=model)
    made.replicas.group = group
    found = finished(made)
    assert found.replicas == group
    close(found, expected)


def test_on_a_cpu_small_operators_are_stacked_and_large_ones_are_not():
    for batch, expected in ((4, 8), (4096, 1)):
        made = training(8, recipe={"batch": batch})
        assert made.replicas.together == expected
        assert (made.speedup is None) == (expected == 1)


def test_the_choice_is_a_count_and_no_timing():
    made = training(8, recipe={"batch": 200})
    batch = batch_of(made.trial(1), 0)
    assert len({elements(made.replicas, batch, made.task.loss) for _ in range(3)}) == 1


@pytest.mark.parametrize(("each", "group"), [(1e3, 16), (10_000, 8), (25_000, 6), (40_000, 1)])
def test_groups_keep_operators_small_and_are_of_one_size(each, group):
    assert cpu_group(training(16).replicas, each) == group


def test_threads_divide_operators_that_are_small_and_replicas_whose_are_not():
    replicas = training(16).replicas
    torch.set_num_threads(2)
    assert [cpu_group(replicas, each) for each in (1e3, 20_000, 25_000, 40_000)] == [16, 8, 8, 1]


@pytest.mark.parametrize("model", ["transformer", "baseconv"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_batch_in_slices_gives_the_same_losses(model, replicas):
    expected = training(replicas, model=model)
    made = training(replicas, model=model)
    for one in (expected, made):
        one.replicas.stacked = False
    assert (expected.replicas.slices, made.replicas.slices) == (1, 1)
    made.replicas.slices = 4  # of 6 prompts: slices of 1, 2, 1 and 2
    close(finished(made), finished(expected))


def test_large_batches_are_taken_in_slices_on_a_cpu():
    made = training(1, recipe={"batch": 8192})
    assert made.replicas.slices > 1
    assert training(1).replicas.slices == 1


class Coupled(torch.nn.Module):
    """Every prediction depends on the mean over the batch."""

    def __init__(self):
        super().__init__()
        self.map = torch.nn.Linear(2, 1)

    def forward(self, prompt):
        out = self.map(prompt.tokens)[:, ::2]
        return out * (1 + out.mean())


class Buffered(Coupled):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, prompt):
        return self.map(prompt.tokens)[:, ::2]


@pytest.mark.parametrize("cls", [Coupled, Buffered])
def test_what_looks_at_the_batch_or_keeps_buffers_is_not_sliced(cls):
    made = training(1, recipe={"batch": 64})
    torch.manual_seed(0)
    replicas = Replicas([cls().double()], CPU)
    batch = batch_of(made.trial(1), 0)
    assert cpu_slices(replicas, batch, made.task.loss, 4 * SLICE_ELEMENTS) == 1
    assert cpu_slices(made.replicas, batch, made.task.loss, 4 * SLICE_ELEMENTS) == 4


def test_replicas_are_halved_until_they_fit_in_memory():
    made = training(7)
    batch, tried = batch_of(made.trial(1), 0), []

    class Small(type(made.replicas)):
        def losses_from(self, start, batch, loss):
            tried.append(self.group)
            if self.group > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().losses_from(start, batch, loss)

    made.replicas.__class__ = Small
    assert fitting_group(made.replicas, batch, made.task.loss) == 2
    assert tried[:2] == [7, 4]
    assert made.replicas.group == 7


def test_one_replica_that_does_not_fit_is_an_error():
    made = training(2)

    class Nothing(type(made.replicas)):
        def losses_from(self, start, batch, loss):
            raise torch.OutOfMemoryError("CUDA out of memory")

        def loss_of(self, replica, batch, loss, part=0):
            raise torch.OutOfMemoryError("CUDA out of memory")

    made.replicas.__class__ = Nothing
    with pytest.raises(torch.OutOfMemoryError):
        fitting_group(made.replicas, batch_of(made.trial(1), 0), made.task.loss)


def test_without_a_gpu_a_graph_is_refused_with_a_reason_and_auto_is_eager():
    made = training()
    engine, reason = make_engine(made, "graph")
    assert engine.name == "eager"
    assert "CUDA" in reason
    assert make_engine(made, "auto")[1] is None
    assert "no CUDA graph" in training(engine="graph").note
    with pytest.raises(UsageError, match="did you mean 'graph'"):
        make_engine(made, "grahp")


def test_a_compilation_that_fails_is_one_line(monkeypatch):
    def broken(function):
        def run(*args):
            raise RuntimeError("no compiler\nand more lines")

        return run

    monkeypatch.setattr(torch, "compile", broken)
    made = training(engine="compiled")
    assert made.engine.name == "eager"
    assert made.note.endswith("not compiled: RuntimeError: no compiler")
    close(finished(made), finished(training()))


def test_a_compilation_that_computes_something_else_is_not_used(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: lambda *args: 1.01 * function(*args))
    made = training(engine="compiled")
    assert made.engine.name == "eager"
    assert "differ" in made.note


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler's own
@pytest.mark.parametrize(("replicas", "name"), [(1, "compiled"), (3, "compiled graph")])
def test_compiled_and_eager_training_agree(replicas, name):
    """Losses after 30 steps differ by at most 1e-10 in float64, by a graph's steps too."""
    made = training(replicas, engine="compiled")
    assert made.engine.name == "compiled", made.note
    if name != "compiled":
        made.engine = GraphOnCPU(made.engine)
        made.data.at_once = True
    programs = counters["stats"]["unique_graphs"]
    found = finished(made)
    assert counters["stats"]["unique_graphs"] == programs or name == "compiled"
    assert found.engine == name
    close(found, finished(training(replicas, engine="eager")))


def cuda():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.device("cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["transformer", "baseconv"])
@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("recipe", [{}, {"gradient_memory": 0.9, "optimizer": "sgd"}], ids=str)
def test_graph_and_eager_training_agree_on_a_gpu(model, replicas, recipe):
    options = {"model": model, "device": cuda(), "recipe": recipe}
    made = training(replicas, **options)
    found = finished(made)
    assert found.engine == "graph", found.note
    close(found, finished(training(replicas, engine="eager", **options)), 1e-9)


@pytest.mark.gpu
@pytest.mark.parametrize("replicas", [1, 4])
def test_a_compiled_step_is_captured_on_a_gpu(replicas):
    found = finished(training(replicas, device=cuda(), engine="compiled"))
    assert found.engine == "compiled graph", found.note
    close(found, finished(training(replicas, device=cuda(), engine="eager")), 1e-9)


@pytest.mark.gpu
def test_a_graph_waits_for_nothing_within_a_chunk_on_a_gpu():
    made = training(4, device=cuda(), recipe={"steps": 1000})
    for _ in range(2):
        made.advance()
    drawn = made.data.next()
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(made.recipe.chunk):
            made.engine.graph.replay()
    finally:
        torch.cuda.set_sync_debug_mode(before)
    assert drawn.target.is_cuda


def test_each_replica_draws_from_its_own_task():
    """Replicas whose tasks differ in noise learn what each would learn alone."""

    def plan(noise):
        request = {
            "model": "baseconv", "task": "least-squares", "recipe": "smoke", "dtype": "float64",
            "task_args": {"dim": 2, "examples": 4, "noise": noise}, "seeds": 1,
            "model_args": {"layers": 1, "width": 8}, "recipe_args": {"steps": 10, "batch": 4},
        }  # fmt: skip
        return resolve(parse_config(RunSpec, request, "test"))

    plans = [plan(noise) for noise in (0.0, 0.7)]
    assert plans[0].train_key == plans[1].train_key
    options = {"device": CPU, "dtype": torch.float64}

    def train(plans):
        modules = [initial_module(p, 0).double() for p in plans]
        who = [Replica(0, 1e-2, p.task) for p in plans]
        return finished(Training(modules, who, plans[0].task, plans[0].recipe, **options))

    together = train(plans)
    assert together.replicas == 2
    for column, one in enumerate(plans):
        alone = torch.tensor([row[0] for row in train([one]).curve])
        found = torch.tensor([row[column] for row in together.curve])
        assert torch.allclose(found, alone, rtol=AGREE, atol=0)
    assert together.curve[0][0] != together.curve[0][1]


def test_batches_keep_their_fields():
    drawn = training().trial(2)
    one = batch_of(drawn, 1)
    assert isinstance(one, Batch)
    whole = map_tensors(lambda t: t[:, 1], drawn.prompt)
    assert all(torch.equal(a, b) for a, b in zip(one.prompt, whole, strict=True))
    assert isinstance(Recipe(steps=1, batch=1).chunk, int)
