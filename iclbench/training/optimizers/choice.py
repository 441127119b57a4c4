"""Optimizers by name, and the check of a recipe's optimizer before a run starts."""

from __future__ import annotations

import inspect
import random
from typing import Any

import numpy as np
import torch

from ...api.config import parse_config
from ...api.errors import UsageError, first_line, unknown
from ...api.recipe import Recipe
from ..replicas import Replicas
from .adam import Adam, AdamW
from .base import BatchOptimizer, Optimizer, Stacked
from .gauss_newton import GaussNewton
from .installed import class_at
from .lbfgs import LBFGS
from .sgd import SGD
from .soap import SOAP
from .torch_optimizer import TorchOptimizer, torch_classes, with_rate

#: The harness's own optimizers; any other name is torch's or a package's.
OWN: dict[str, type[Stacked] | type[GaussNewton] | type[LBFGS]] = {
    "adam": Adam,
    "adamw": AdamW,
    "sgd": SGD,
    "soap": SOAP,
    "gauss-newton": GaussNewton,
    "lbfgs": LBFGS,
}


def make_optimizer(replicas: Replicas, name: str, arguments: dict[str, Any]) -> Optimizer:
    """Make the optimizer of that name; raises UsageError for an unknown name or argument."""
    if name.lower() in OWN:
        return OWN[name.lower()](replicas, arguments)
    return TorchOptimizer(replicas, name, _torch_class(name), arguments)


def same_optimizer(name: str, other: str) -> bool:
    """Whether two names mean the same optimizer; raises UsageError for an unknown one."""
    return name == other or _spelled(name) == _spelled(other)


def _spelled(name: str) -> str:
    """The name by which records call an optimizer, however it was given."""
    if name.lower() in OWN:
        return name.lower()
    cls = _torch_class(name)
    short: str = cls.__name__
    # One of torch.optim has one name, unless it is the harness's own.
    is_torchs = short.lower() not in OWN and torch_classes().get(short.lower()) is cls
    return short if is_torchs else name


def evaluates_the_loss(recipe: Recipe) -> bool:
    """Whether the optimizer evaluates the loss itself, any number of times per step."""
    cls = OWN.get(recipe.optimizer.lower())
    return cls is not None and issubclass(cls, BatchOptimizer)


def with_whole_optimizer(recipe: Recipe) -> Recipe:
    """Return the recipe with its optimizer's own name, and every argument of the harness's own.

    Raises UsageError for an unknown optimizer, for arguments that it refuses, and for a recipe that
    it can't use.
    """
    name, arguments = recipe.optimizer, recipe.optimizer_args
    harness_class = OWN.get(name.lower())
    if evaluates_the_loss(recipe):
        _check_whole_batches(recipe)
    if harness_class is GaussNewton and recipe.batch < 2:
        raise UsageError(f"optimizer {name} divides its batch: it needs two prompts or more")
    if "lr" in arguments:
        raise UsageError(f"optimizer {name}: lr is the recipe's learning_rate")
    if harness_class is not None:
        parsed = parse_config(harness_class.Arguments, arguments, f"optimizer {name}")
        changes = {"optimizer": name.lower(), "optimizer_args": parsed.model_dump(mode="json")}
        return recipe.model_copy(update=changes)
    _try_step(_torch_class(name), name, arguments)
    return recipe.model_copy(update={"optimizer": _spelled(name)})


def _try_step(cls: Any, name: str, arguments: dict[str, Any]) -> None:
    """Raise UsageError for an optimizer that can't take a step as the harness asks for it."""
    if callable(getattr(cls, "train", None)) and callable(getattr(cls, "eval", None)):
        raise UsageError(
            f"optimizer {name} keeps its result in other weights than it trains, until its eval() "
            "is called; the harness evaluates those that it trains"
        )
    parameter = torch.nn.Parameter(torch.ones(2, 2))
    parameter.grad = torch.full((2, 2), 1e-3)
    # The step is on a CPU, where torch refuses what it can capture on a GPU.
    arguments = with_rate(cls, arguments)
    here = {k: False if k == "capturable" else value for k, value in arguments.items()}
    before = _generator_states()
    try:
        cls([parameter], **arguments)
        optimizer = cls([parameter], **here)
        for _ in range(2):
            optimizer.step()
    except Exception as error:  # a package may raise anything
        raise UsageError(f"optimizer {name}: {first_line(error)}") from None
    if _generator_states() != before:
        raise UsageError(
            f"optimizer {name} draws random numbers of its own, which no seed of a run sets"
        )


def _generator_states() -> tuple[Any, ...]:
    """The states of the random generators that a package may draw from."""
    numpy_state = np.random.get_state(legacy=False)["state"]
    numpys = numpy_state["key"].tobytes(), numpy_state["pos"]
    return torch.get_rng_state().tolist(), numpys, random.getstate()


def _check_whole_batches(recipe: Recipe) -> None:
    """Raise UsageError for what an optimizer that evaluates the loss itself would ignore."""
    name = recipe.optimizer
    if recipe.clip or recipe.gradient_memory:
        raise UsageError(
            f"optimizer {name} computes its own gradient: leave out clip and gradient_memory"
        )
    if recipe.accumulate > 1:
        raise UsageError(f"optimizer {name} takes whole batches: accumulate=1")
    if recipe.autocast != "none":
        raise UsageError(f"optimizer {name} needs full precision: autocast=none")


def _torch_class(name: str) -> Any:
    """Return a class of torch.optim by its name, or any other by its path, `package.Class`."""
    if "." in name or ":" in name:
        cls = class_at(name)
    else:
        classes = torch_classes()
        if name.lower() not in classes:
            raise unknown("optimizer", name, {*OWN, *classes})
        cls = classes[name.lower()]
    closure = inspect.signature(cls.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise UsageError(f"optimizer {name} needs a closure, which the harness doesn't give")
    return cls
