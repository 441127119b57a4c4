"""Every installed architecture and task passes the conformance checks."""

from __future__ import annotations

import pytest

from iclbench import (
    Architecture,
    BackboneArchitecture,
    SequenceArchitecture,
    Task,
    check_architecture,
    check_task,
    host,
)


def provided(kind, base):
    """Every class of a kind that the installed plugins provide."""
    return [host().load(kind, entry.name, base) for _, entry in host().entries(kind)]


def small_config(owner, **values):
    """The owner's configuration with those of the values that it has."""
    return owner.Config(**{k: v for k, v in values.items() if k in owner.Config.model_fields})


TASKS = [task(small_config(task, examples=8)) for task in provided("task", Task)]
ARCHITECTURES = provided("model", Architecture)


#: Sequence models that the fast tests check on every task. The others differ from them in the
#: layers alone, so the fast tests check those on `FAST_TASKS`, and the slow tests on the rest.
CHECKED_ON_ALL_TASKS = {"transformer", "baseconv", "lsa-tokens", "elsa-tokens"}
FAST_TASKS = {"least-squares-prefixes"}


#: The condition number of these systems, 5e7, is beyond what the network's knots divide by.
BEYOND_REACH = {("gaussian-elimination-network", "ode-operator")}


#: Estimators that are fitted to every prefix of every prompt in turn.
FITTED_ONE_BY_ONE = {"lasso", "cart", "boosted-trees", "two-layer-network"}


def is_slow(architecture, task):
    """Whether only the slow tests check this pair."""
    in_sequence = issubclass(architecture, SequenceArchitecture | BackboneArchitecture)
    in_sequence |= architecture.name in {"hybrid", "looped-transformer"}
    return (in_sequence or architecture.name in FITTED_ONE_BY_ONE) and not (
        architecture.name in CHECKED_ON_ALL_TASKS or task.name in FAST_TASKS
    )


def pairs():
    """Every architecture, in a small configuration, with every task that it supports."""
    for architecture in ARCHITECTURES:
        config = small_config(architecture, layers=2, width=8, value=1.0, loops=3, trained_loops=2,
                              tasks=4, trees=2)  # fmt: skip
        for task in TASKS:
            if (architecture.name, task.name) in BEYOND_REACH:
                continue
            if architecture().supports(task.signature, config) is None:
                name = f"{architecture.name}-{task.name}"
                marks = [pytest.mark.slow] if is_slow(architecture, task) else []
                yield pytest.param(architecture(), task, config, id=name, marks=marks)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_task_conforms(task):
    check_task(task)


@pytest.mark.parametrize(("architecture", "task", "config"), [*pairs()])
def test_every_architecture_conforms_on_each_task_it_supports(architecture, task, config):
    check_architecture(architecture, task, config)


def test_every_architecture_supports_a_task():
    tested = {parameters.values[0].name for parameters in pairs()}
    assert tested == {architecture.name for architecture in ARCHITECTURES}
