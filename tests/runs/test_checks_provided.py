"""Every installed architecture and task passes the conformance checks."""

from __future__ import annotations

import pytest

from iclbench import (
    Architecture,
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


#: Short prompts: a check's time grows with their length, and what it checks does not depend on it.
SHORT = {"examples": 8, "length": 24, "tokens": 4, "points": 9, "evaluation_automata": 20}
TASKS = [task(small_config(task, **SHORT)) for task in provided("task", Task)]
ARCHITECTURES = provided("model", Architecture)


#: Models that the fast tests check on every task that they support. They check the others on the
#: first one, of those of least squares if they can, and the slow tests on the rest.
CHECKED_ON_ALL_TASKS = {"transformer", "baseconv", "least-squares-qr", "zero"}
FIRST = "least-squares-prefixes"


#: The condition number of these systems, 5e7, is beyond what the network's knots divide by.
BEYOND_REACH = {("gaussian-elimination-network", "ode-operator")}


def pairs():
    """Every architecture, in a small configuration, with every task that it supports."""
    for architecture in ARCHITECTURES:
        config = small_config(architecture, layers=2, width=8, value=1.0, loops=3, trained_loops=2,
                              tasks=4, trees=2, steps=20)  # fmt: skip
        supported = [
            task
            for task in sorted(TASKS, key=lambda task: task.name != FIRST)
            if architecture().supports(task.signature, config) is None
            and (architecture.name, task.name) not in BEYOND_REACH
        ]
        for i, task in enumerate(supported):
            name = f"{architecture.name}-{task.name}"
            slow = i > 0 and architecture.name not in CHECKED_ON_ALL_TASKS
            marks = [pytest.mark.slow] if slow else []
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
