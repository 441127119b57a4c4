"""Predictions at chance: every task has one, and they have the values of their closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from support import evaluation_context

from iclbench import Solver, Text, load_task
from iclbench.api.architecture import Architecture
from iclbench.api.config import parse_config
from iclbench.plugins import host
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_linear_systems.task import LinearSystems

#: Small instances, so that a test takes seconds.
SMALL = {
    "imagenet": {"dim": 16},
    "stories": {"vocabulary": 300, "length": 16, "beginning": 8, "endings": 2},
}
#: Prompts of the comparisons with closed forms, and their evaluation seed.
PROMPTS, SEED = 4096, 77


def chance_solvers(task):
    """The solvers at chance that need no arguments and accept the task."""
    models = [
        host().load("model", entry.name, Architecture) for _, entry in host().entries("model")
    ]
    solvers = [m() for m in models if issubclass(m, Solver) and m.chance and m.name != "constant"]
    return [s for s in solvers if s.supports(task.signature, s.Config()) is None]


def scores(name, task, metric=None, n=PROMPTS, **args):
    """A solver's primary metric, or another one, of each prompt."""
    solver = host().load("model", name, Architecture)()
    module = solver.build(task.signature, parse_config(solver.Config, args, name))
    parts = [
        task.evaluate(module, batch, evaluation_context(1024))
        for batch in task.evaluation_batches(n, SEED, torch.float32)
    ]
    return task.combine(parts)[metric or task.primary.metric].numpy()


def test_every_task_has_a_row_at_chance():
    names = [entry.name for _, entry in host().entries("task")]
    assert len(names) >= 13
    for name in names:
        task = load_task(name, **SMALL.get(name, {}))
        solvers = chance_solvers(task)
        assert solvers, name
        (batch, *_) = task.evaluation_batches(6, SEED, torch.float32)
        for solver in solvers:
            prediction = solver.build(task.signature, solver.Config())(batch.prompt)
            assert prediction.shape[:2] == (6, len(task.signature.readout)), (name, solver.name)
            assert prediction.isfinite().all()


def test_other_solvers_are_not_at_chance():
    for name in ("averaging", "kernel-regression", "cholesky", "functional-gd"):
        assert not host().load("model", name, Solver).chance


@pytest.mark.parametrize(
    ("task", "args", "expected"),
    [
        ("least-squares", {}, 5.0),  # E[(xᵀw)²] = D
        ("least-squares", {"target": "weights"}, 5.0),  # E‖w‖² = D
        ("least-squares-prefixes", {}, 5.0),
        ("least-squares-features", {}, 5.0),
        ("linear-system", {"sizes": 5}, 1.0),  # x ~ N(0, I)
        ("linear-system", {"sizes": "2-4"}, 1.0),
        ("read", {}, 1.0),
        ("multiply", {}, 1.0),
        ("square", {}, 3.0),  # E[u⁴]
    ],
)
def test_zero_has_the_mean_square_of_the_targets(task, args, expected):
    errors = scores("zero", load_task(task, **args))
    assert abs(errors.mean() - expected) < 4 * errors.std() / PROMPTS**0.5


def test_zero_on_affine_has_the_square_of_its_map():
    task = load_task("affine")
    expected = float(task.parameters["h"].square().sum())
    errors = scores("zero", task)
    assert abs(errors.mean() - expected) < 4 * errors.std() / PROMPTS**0.5


def test_a_constant_at_the_mean_has_the_variance_of_the_targets():
    errors = scores("constant", load_task("square"), value=1.0)
    assert abs(errors.mean() - 2.0) < 4 * errors.std() / PROMPTS**0.5  # Var(u²)


def test_zero_is_the_constant_0():
    for task in (LeastSquaresPrefixes(LeastSquaresPrefixes.Config()),
                 LinearSystems(LinearSystems.Config())):  # fmt: skip
        constant, zero = scores("constant", task, n=8, value=0.0), scores("zero", task, n=8)
        np.testing.assert_array_equal(constant, zero)


@pytest.mark.parametrize("task", ["categorical", "categorical-quadrants", "imagenet"])
def test_uniform_has_the_logarithm_of_the_number_of_classes(task):
    task = load_task(task, **SMALL.get(task, {}))
    nll = scores("uniform", task, "nll", n=64)
    np.testing.assert_allclose(nll, math.log(task.signature.classes), rtol=1e-6)


def test_equally_frequent_classes_are_uniform():
    nll = scores("class-frequency", load_task("imagenet", **SMALL["imagenet"]), "nll", n=64)
    np.testing.assert_allclose(nll, math.log(5), rtol=1e-6)


def test_uniform_over_a_vocabulary():
    task = load_task("stories", **(SMALL["stories"] | {"endings": 0}))
    nll = scores("uniform", task, "nll", n=8)
    np.testing.assert_allclose(nll, math.log(task.signature.output_width), rtol=1e-6)


def test_frequencies_of_ids_are_those_of_the_text_so_far():
    task = load_task("stories", **(SMALL["stories"] | {"prefixes": 4, "endings": 0}))
    solver = host().load("model", "class-frequency", Architecture)()
    size = task.signature.vocabulary
    ids = torch.randint(size, (3, 16), generator=torch.Generator().manual_seed(0))
    actual = solver.build(task.signature, solver.Config(smoothing=0.3))(Text(ids))
    for k, last in enumerate(task.signature.readout):
        counts = np.stack([np.bincount(row[: last + 1], minlength=size) for row in ids.numpy()])
        expected = np.log(0.7 * counts / (last + 1) + 0.3 / size)
        np.testing.assert_allclose(actual[:, k].numpy(), expected, rtol=1e-5)
