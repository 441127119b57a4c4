"""Whether what an architecture or a task declares of itself is so, such as its `replica_args`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

import torch
from torch import nn

from ..api.architecture import Architecture
from ..api.config import Config, parse_config
from ..api.errors import UsageError
from ..api.prompts import Batch
from ..api.random import torch_generator
from ..api.scoring import POWERS
from ..api.task import Task, training_batch
from ..runs.checks import expect
from ..runs.inspection import expected_shape

#: How many prompts are looked at.
PROMPTS = 4
#: Added to the weights, so that no part of a model is left out because it starts at 0.
NOISE = 0.1
#: Names that are more alike than this are one name and a misspelling of it.
ALIKE = 0.75
#: How far from the truth the kinds of errors are looked at.
DISTANCE = 1e-6


def check_replicas_of_model(architecture: Architecture, task: Task[Any], config: Config) -> None:
    """Raise ConformanceError for one of `replica_args` that the forward pass depends on.

    Replicas are computed as one program, by the module of the first and each with its weights.
    """
    for name in sorted(architecture.replica_args):
        for other in _others(config, name):
            first, second = (_noisy(architecture, task, one) for one in (config, other))
            try:
                second.load_state_dict(first.state_dict())
            except RuntimeError:
                expect(False, f"replica_args has {name}, on which the weights' shapes depend")
            generator = torch_generator("cpu", "conformance")
            batch = training_batch(task, PROMPTS, generator, torch.get_default_dtype())
            with torch.no_grad():
                one, two = first(batch.prompt), second(batch.prompt)
            same = torch.allclose(one, two, rtol=0, atol=0, equal_nan=True)
            expect(same, f"replica_args has {name}, on which predictions depend beside the weights")


def _noisy(architecture: Architecture, task: Task[Any], config: Config) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = architecture.build(task.signature, config).eval()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(NOISE * torch.randn_like(parameter))
    return module


def check_declared(task: Task[Any]) -> None:
    """Raise ConformanceError for a false declaration of a task, and for targets that are none.

    Those are its version, `training_only`, the values of axes, and `replica_args`, on which the
    form of its prompts must not depend.
    """
    version = task.version
    expect(type(version) is int and version > 0, f"version must be a whole number, not {version!r}")
    surplus = sorted(task.training_only - type(task.config).model_fields.keys())
    expect(not surplus, f"training_only names {', '.join(surplus)}, which Config lacks")
    for name, axis in task.axes.items():
        apart = len(set(axis.values)) == len(axis.values)
        expect(apart, f"the axis of {name} has a value twice")
    batch = training_batch(task, PROMPTS, torch_generator("cpu", "conformance"), torch.float64)
    finite = not batch.target.is_floating_point() or not bool(batch.target.isinf().any())
    numbers = not batch.target.is_floating_point() or bool(batch.target.isfinite().any())
    expect(finite and numbers, "training targets are not finite")
    for name in sorted(task.replica_args):
        for config in _others(task.config, name):
            other = type(task)(config)
            same = other.signature == task.signature
            expect(same, f"replica_args has {name}, on which the signature depends")
    check_scores(task)


def check_scores(task: Task[Any]) -> None:
    """Raise ConformanceError for metrics that are NaN everywhere, and for false names and kinds.

    `errors`, `fractions` and `unrounded` may name what another configuration has; only a
    misspelling of what this one has is found.
    """
    batches = list(task.evaluation_batches(PROMPTS, 0, torch.float64))
    scores = scores_of_zeros(task, batches)
    for batch in batches:
        _check_kinds(task, batch)
    for name, parts in scores.items():
        number = any(not bool(values.isnan().all()) for values in parts)
        expect(number, f"metric {name} is NaN for every prompt, with a prediction of zeros")
    draws = {name.rpartition("/")[2] for name in task.evaluation_draws(PROMPTS, 0)}
    check_spelling("errors", task.errors, scores)
    check_spelling("fractions", task.fractions, scores)
    check_spelling("unrounded", task.unrounded, draws)


def scores_of_zeros(task: Task[Any], batches: Iterable[Batch]) -> dict[str, list[torch.Tensor]]:
    """The values of a prediction of zeros by metric, one tensor a batch."""
    scores: dict[str, list[torch.Tensor]] = {}
    for batch in batches:
        zeros = torch.zeros(expected_shape(task, batch), dtype=torch.float64)
        for name, values in task.metrics(zeros, batch).items():
            scores.setdefault(name, []).append(values)
    return scores


def _check_kinds(task: Task[Any], batch: Batch) -> None:
    """An error of a kind grows with the distance from the truth, or with its square."""
    near = task.errors_at(batch, lambda target: torch.full_like(target, DISTANCE))
    far = task.errors_at(batch, lambda target: torch.full_like(target, 2 * DISTANCE))
    for name in near.keys() & far.keys() & task.errors.keys():
        growths = (far[name] / near[name]).flatten()
        growths = growths[growths.isfinite()]
        if len(growths):
            growth, wanted = float(growths.median()), 2.0 ** POWERS[task.errors[name]]
            expect(
                abs(growth / wanted - 1) < 0.1,
                f"errors has {name} as {task.errors[name]}, which should grow {wanted:g}-fold "
                f"with twice the distance; it grows {growth:.3g}-fold",
            )


def check_spelling(where: str, stated: Iterable[str], known: Iterable[str]) -> None:
    """Raise ConformanceError for a name that looks like a misspelling of a known one."""
    known = sorted(known)
    for name in sorted(stated):
        alike = difflib.get_close_matches(name, known, n=1, cutoff=ALIKE)
        right = name in known or not alike or alike[0] in stated
        expect(right, f"{where} has {name}; did you mean {alike[0] if alike else name}?")


def _others(config: Config, name: str) -> Iterator[Config]:
    """The configuration with other values of one argument: every choice, or one other number."""
    value, annotation = getattr(config, name), type(config).model_fields[name].annotation
    choices = list(_choices(annotation))
    if isinstance(value, bool):
        choices = [not value]
    elif isinstance(value, int | float):
        choices += [value * 0.5, value * 2, value + 1, value - 1]
    elif value is None:
        choices += [1, 0.5]
    for choice in choices:
        try:
            other = parse_config(type(config), {**config.model_dump(), name: choice}, name)
        except UsageError:
            continue
        if getattr(other, name) != value:
            yield other
            if not _choices(annotation):
                return


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The values of a Literal, also of one among other types."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in _choices(part))
