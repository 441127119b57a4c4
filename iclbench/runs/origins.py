"""The origin of a run's weights: the rules, and the weights that a request names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..api.architecture import Architecture, Construction, Solver
from ..api.asked import Asked
from ..api.config import parse_config
from ..api.errors import RunError, UsageError, first_line, unknown
from ..api.prompts import Signature
from ..api.spec import Origin, RunSpec, flag
from ..api.task import Task
from ..files import file_digest
from ..training.checkpoints import load_weights
from .sizes import LARGEST_OF_CONSTRUCTION, require_small_arguments

#: State dicts by seed; the key None holds for every seed.
States = dict[int | None, dict[str, Tensor]]


@dataclass(frozen=True)
class GivenWeights:
    """Weights from a construction or a file, with the model arguments that belong to them.

    `digest` is the file's; `args` are the construction's arguments with their defaults. Weights
    are `partial` where a construction may leave parameters to the initialization, and `foreign`
    where another program saved them.
    """

    states: States = field(default_factory=dict)
    model_args: dict[str, Any] = field(default_factory=dict)
    digest: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    partial: bool = False
    foreign: bool = False

    def states_for(self, architecture: Architecture, signature: Signature, config: Any) -> States:
        """The states under the module's names; raises UsageError if they can't be converted."""
        if not self.foreign:
            return self.states
        try:
            return {
                seed: dict(architecture.convert_weights(state, signature, config))
                for seed, state in self.states.items()
            }
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(
                f"{architecture.name} can't convert the given weights: {first_line(error)}"
            ) from error


def origin_of(request: RunSpec, architecture: Architecture) -> Origin:
    """The origin of the weights; raises UsageError for options that contradict each other.

    - A solver has no weights, so no option about weights applies, nor to a language model that is
      asked. That is asked about the prompts of the evaluation alone.
    - `weights` says what is evaluated, `init` what is trained: only one of them can be given.
    - `freeze` and `perturb` change what `init` gives.
    - `weights_args` belong to a construction.
    """
    if isinstance(architecture, Solver):
        is_asked = isinstance(architecture, Asked)
        names = ["weights", "weights_args", "init", "freeze", "perturb"]
        names += ["shift", "metrics"] if is_asked else []
        for name in names:
            if getattr(request, name):
                what = "asked in text" if is_asked else "a solver"
                raise UsageError(f"{request.model} is {what}: {flag(name)} does not apply")
        return "asked" if is_asked else "solver"
    trained = request.weights in {None, "trained"}
    if request.init and not trained:
        raise UsageError("--weights says what is evaluated, --init what is trained: choose one")
    for name in ("freeze", "perturb"):
        if getattr(request, name) and not request.init:
            raise UsageError(f"{flag(name)} needs --init")
    if request.weights_args and source_of(request) not in architecture.constructions:
        raise UsageError("--weights-args needs a construction, named by --weights or --init")
    if trained:
        return "trained"
    return "constructed" if request.weights in architecture.constructions else "loaded"


def source_of(request: RunSpec) -> str | None:
    """The construction or file that the request names, whether to train or to evaluate."""
    return request.init or (None if request.weights == "trained" else request.weights)


def given_weights(
    request: RunSpec, architecture: Architecture, task: Task[Any], origin: Origin
) -> GivenWeights:
    """The weights that the request names.

    Raises UsageError for unknown or unsuitable ones, and RunError where a construction fails.
    """
    source = source_of(request)
    if source is None:
        return GivenWeights()
    construction = architecture.constructions.get(source)
    if construction is not None:
        return _constructed(source, construction, request, task)
    path, option = Path(source), "--init" if request.init else "--weights"
    if not path.is_file():
        if (path.suffix or len(path.parts) > 1) and not path.is_dir():
            raise UsageError(f"{option} {source}: no such file")
        known = [*([] if request.init else ["trained"]), *architecture.constructions]
        what = f"{source} is a folder" if path.is_dir() else "no such file"
        raise UsageError(f"{option}: {what}, and {unknown('construction', source, known)}")
    return _from_file(path, request, origin)


def _constructed(
    name: str, construction: Construction, request: RunSpec, task: Task[Any]
) -> GivenWeights:
    args = parse_config(construction.Config, request.weights_args, f"construction {name}")
    require_small_arguments(args, f"construction {name}", LARGEST_OF_CONSTRUCTION)
    try:
        model_args, state = construction.build(task.signature, args, task)
        model_args, state = dict(model_args), dict(state)
        _require_float64(state)
    except UsageError:
        raise
    except Exception as error:
        raise RunError(f"construction {name}: {first_line(error)}") from error
    return GivenWeights({None: state}, model_args, args=args.model_dump(mode="json"), partial=True)


def _require_float64(state: Mapping[str, Tensor]) -> None:
    """Raise TypeError for numbers that were rounded to another dtype."""
    for name, tensor in state.items():
        if tensor.is_floating_point() and tensor.dtype != torch.float64:
            raise TypeError(f"{name} is {tensor.dtype}, and must be torch.float64")


def _from_file(path: Path, request: RunSpec, origin: Origin) -> GivenWeights:
    weights = load_weights(path)
    if weights.model not in {None, request.model}:
        raise UsageError(f"{path} holds the weights of {weights.model}, not of {request.model}")
    states = weights.states
    if origin == "trained" and len(states) == 1:
        # Every seed's training starts from the only state.
        states = {None: next(iter(states.values()))}
    if origin == "trained" and None not in states:
        missing = [seed for seed in request.seeds if seed not in states]
        if missing:
            raise UsageError(f"{path} has no weights of seed {missing[0]}")
    foreign = weights.model is None
    return GivenWeights(states, weights.model_args, file_digest(path), foreign=foreign)
