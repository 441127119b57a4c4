"""Conformance checks of architectures; each raises ConformanceError.

The kit has those of all other kinds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from ..api.architecture import Architecture
from ..api.asked import Asked
from ..api.capabilities import CAPABILITIES, TrainingContext, offers
from ..api.config import Config
from ..api.errors import IclbenchError
from ..api.prompts import map_tensors, stack
from ..api.random import torch_generator
from ..api.task import Task, training_batch
from ..nn.backbone import BackboneModel
from ..nn.model import SequenceModel
from ..nn.predictions import averaged
from ..nn.training_form import tensors_of
from ..precision import default_dtype
from ..training.checkpoints import load_state
from ..training.gradients.binding import NoFormError
from ..training.gradients.equivalence import Reference
from ..training.gradients.leading import Leading
from ..training.replicas import Replicas
from .caches import differing_cache
from .causality import reads_ahead
from .honesty import find_lower_precision
from .inspection import find_problem, predict_otherwise


class ConformanceError(IclbenchError):
    """A plugin breaks a promise of its interface."""


def check_architecture(architecture: Architecture, task: Task[Any], config: Config) -> None:
    """Check a module that the architecture builds for the task.

    It must follow from torch's seed, have the signature's shapes and dtype, treat each prompt
    independently, be causal where the signature or the configuration says so, continue from a cache
    as it reads a whole sequence, and use all its parameters. A language model is not asked: its
    questions must be one per prompt and its own, and an answer read as numbers.
    """
    reason = architecture.supports(task.signature, config)
    expect(reason is None, f"supports() refuses: {reason}")
    if isinstance(architecture, Asked):
        _check_asked(architecture, task, config)
        return
    signature = task.signature
    dtype = torch.get_default_dtype()
    try:
        module = architecture.build(signature, config).eval()
        batch = training_batch(task, 6, torch_generator("cpu", "conformance"), dtype)
        problem = (
            _unseeded(architecture, task, config)
            or find_problem(module, task)
            or _outside_state(architecture, task, config)
        )
        after = torch.get_default_dtype()
    finally:
        torch.set_default_dtype(dtype)
    expect(after == dtype, f"it changes torch's default dtype to {after}")
    expect(problem is None, str(problem))
    if architecture.float64:
        with default_dtype(torch.float64):
            module64 = architecture.build(signature, config)
            problem = _lower_state(module64) or find_lower_precision(module64, task)
        expect(problem is None, f"not fit for float64: {problem}")
    problem = differing_cache(architecture, task, config)
    expect(problem is None, str(problem))
    claims_causal = isinstance(module, BackboneModel)
    claims_causal |= isinstance(module, SequenceModel) and getattr(config, "causal", False)
    if signature.causal or claims_causal:
        position = reads_ahead(module, task)
        expect(position is None, f"is not causal: position {position} changes with later inputs")
    for capability in CAPABILITIES:
        offers(module, capability)
    problem = _of_replicas(architecture, task, config)
    expect(problem is None, f"its form for several replicas differs: {problem}")
    if any(parameter.requires_grad for parameter in module.parameters()):
        loss = task.loss(module(batch.prompt), batch.target).mean()
        named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        grads = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
        unused = [name for name, grad in zip(named, grads, strict=True) if grad is None]
        expect(not unused, f"parameters without a gradient: {', '.join(unused)}")


def _lower_state(module: torch.nn.Module) -> str | None:
    """Which parameter or buffer of a module that was built in float64 has fewer digits, or None."""
    for name, tensor in tensors_of(module).items():
        if tensor.is_floating_point() and tensor.dtype != torch.float64:
            return f"its {name} is {str(tensor.dtype).removeprefix('torch.')}"
    return None


def _unseeded(architecture: Architecture, task: Task[Any], config: Config) -> str | None:
    """Which parameter or buffer does not follow from torch's seed, or None.

    Such a model can't be trained again to the same weights.
    """
    states = []
    for fills in (False, True):
        with torch.random.fork_rng(devices=[]), _filled_memory(fills):
            torch.manual_seed(0)
            states.append(architecture.build(task.signature, config).state_dict())
    first, second = states
    for name, tensor in first.items():
        if name not in second or not torch.equal(tensor, second[name]):
            return f"built twice with one seed, its {name} differs: draw numbers by torch alone"
    return None


def _outside_state(architecture: Architecture, task: Task[Any], config: Config) -> str | None:
    """Whether it keeps random numbers that are no parameters or buffers, in words, or None."""
    module, other = (architecture.build(task.signature, config) for _ in range(2))
    load_state(other, tensors_of(module), "its own state")
    if predict_otherwise(module, other, task):
        return "it keeps numbers outside its parameters and buffers: use register_buffer"
    return None


@contextmanager
def _filled_memory(fills: bool) -> Iterator[None]:
    """Have torch fill memory, if asked to, which tensors else get as it was left, often alike."""
    before = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(fills, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warns)


def _check_asked(asked: Asked, task: Task[Any], config: Config) -> None:
    signature = task.signature
    prompt = training_batch(
        task, 6, torch_generator("cpu", "conformance"), torch.get_default_dtype()
    ).prompt
    questions = asked.questions(prompt, signature, config)
    expect(len(set(questions)) == 6, "its questions are not one per prompt")
    alone = [
        asked.questions(map_tensors(lambda t, i=i: t[i : i + 1], prompt), signature, config)
        for i in range(6)
    ]
    expect([[q] for q in questions] == alone, "a question depends on the other prompts")
    width = len(signature.readout) * signature.output_width
    for answer in ("", "\n", "I don't know.", "1e999", " 0.5, 0.25\n"):
        numbers = list(asked.read(answer, signature, config))
        expect(len(numbers) == width, f"{answer!r} is read as {len(numbers)} numbers, not {width}")
        expect(
            all(map(math.isfinite, numbers)), f"{answer!r} is read as a number that is not finite"
        )
    none = list(asked.read("I don't know.", signature, config))
    for answer in ("nan", "inf", "-inf"):
        numbers = list(asked.read(answer, signature, config))
        expect(numbers == none, f"{answer!r} is read as {numbers}, and no number as {none}")


def _of_replicas(architecture: Architecture, task: Task[Any], config: Config) -> str | None:
    """How the module's form for several replicas at once differs from each one's, or None.

    Raises ConformanceError where a loss or gradient is not finite.
    """
    cpu, dtype = torch.device("cpu"), torch.get_default_dtype()
    modules = [architecture.build(task.signature, config) for _ in range(3)]
    if not any(parameter.requires_grad for parameter in modules[0].parameters()):
        return None
    drawn = [
        training_batch(task, 4, torch_generator("cpu", "conformance of replicas", r), dtype)
        for r in range(len(modules))
    ]
    replicas, batch = Replicas(modules, cpu), stack(drawn)
    context = TrainingContext(cpu, dtype, batch_size=4)
    loss = averaged(task.loss)
    make = partial(Leading, loss=loss, context=context, group_size=3)
    try:
        reference = Reference(replicas, batch, loss)
        finite = bool(reference.whole.finite.all())
        expect(finite, "its loss or gradient is not finite with initial weights")
        return reference.find_mismatch(make)
    except NoFormError:
        return None


def expect(holds: bool, otherwise: str) -> None:
    """Raise ConformanceError unless a promise is kept."""
    if not holds:
        raise ConformanceError(otherwise)
