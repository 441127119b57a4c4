"""Trainings whose time to an error, or speed, is measured: iclbench's, and two papers' own code.

The papers' code is imported from clones of their repositories and runs unchanged: their `train`
iterates over a progress bar, in whose place `Watch` counts the time of the steps and evaluates the
model between two of them. A process can import one clone only, since both have a module `train`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import yaml
from torch import Tensor, nn

from iclbench import Batch, RunSpec
from iclbench.api.config import parse_config
from iclbench.precision import full_precision
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.runs.tuned import read_tuning, tuned
from iclbench.training.loop import Training
from iclbench.training.state import Replica

from .watch import DIM, EXAMPLES, Watch

#: What the papers' training imports for arguments, logging and other baselines, and never calls.
UNUSED = ("wandb", "quinine", "funcy", "xgboost", "munch")


def ours(
    limit: float,
    model: str = "transformer",
    tuning: str | None = None,
    *,
    evaluates: bool = True,
    **request: Any,
) -> Watch:
    """Train by the recipe `quick`, or by what a tuning's file chose, as `iclbench run` does."""
    task_args = {"dim": DIM, "examples": EXAMPLES}
    spec = {"model": model, "task": "least-squares", "task_args": task_args, "seeds": 1, **request}
    plan = resolve(parse_config(RunSpec, spec, "benchmark"))
    if tuning is not None:
        plan = tuned(plan, read_tuning(Path(tuning)))
        # The tuning's trials ended early; the training goes on until the limit.
        plan = resolve(plan.request.model_copy(update={"recipe_args": _endless(plan.request)}))
    recipe = plan.recipe
    assert recipe is not None
    with full_precision(torch.float32):
        watch = Watch(limit)
        training = Training(
            [initial_module(plan, 0)],
            [Replica(0, recipe.learning_rate)],
            plan.task,
            recipe,
            device=torch.device("cpu"),
            dtype=torch.float32,
        )
        module = initial_module(plan, 0)

        def predict(batch: Batch) -> Tensor:
            # Not strictly: a parameter that layers share has one name there.
            module.load_state_dict(training.replicas.state_dict(0), strict=False)
            prediction: Tensor = module.eval()(batch.prompt)
            return prediction

        watch.predict = predict if evaluates else None
        going = watch.after(0)
        while going and training.step < recipe.steps:
            training.advance()
            going = watch.after(training.step, last=training.step == recipe.steps)
    return watch


def _endless(request: RunSpec) -> dict[str, Any]:
    """The recipe's arguments without an end where the schedule doesn't depend on it."""
    args = dict(request.recipe_args)
    if args.get("schedule") == "constant":
        args["steps"] = 10**9
    return args


def garg(
    limit: float,
    clone: str,
    size: str,
    changes: Mapping[str, Any] | None = None,
    evaluates: bool = True,
) -> Watch:
    """Train `src/train.py` of Garg et al. with a model of `conf/models`, at D = 5 and 21 points.

    Their curriculum over points ends at 21 and that over dimensions starts at its end. `changes`
    replace arguments.
    """
    folder = Path(clone) / "src"
    arguments = read_yaml(folder / "conf/linear_regression.yaml")
    arguments = merged(arguments, read_yaml(folder / f"conf/models/{size}.yaml"))
    points = arguments["training"]["curriculum"]["points"]
    arguments = merged(
        arguments,
        {
            "model": {"n_dims": DIM, "n_positions": EXAMPLES + 1},
            "training": {
                "curriculum": {"points": {**points, "end": EXAMPLES + 1}, "dims": {"end": DIM}},
                "num_tasks": None,
                "num_training_examples": None,
                "resume_id": None,
            },
        },
    )

    def predict(model: nn.Module, batch: Batch) -> Tensor:
        x, y = _with_query(batch)
        out: Tensor = model(x, y)
        return out[:, -1:, None]

    arguments = merged(arguments, changes or {})
    return _theirs(folder, arguments, limit, predict if evaluates else None)


def precision_ls(
    limit: float,
    clone: str,
    mixer: str,
    layers: int,
    *,
    config: str = "least_squares",
    changes: Mapping[str, Any] | None = None,
    evaluates: bool = True,
) -> Watch:
    """Train `src/train.py` of precision-ls by a file of `conf/least_squares`.

    Its replication script sets a learning rate of 1e-4. With `least_squares`, the model predicts
    the weights from D = 5, N = 20; only then it can be evaluated. `changes` replace arguments.
    """
    folder = Path(clone) / "src"
    schema_defaults = {
        "model": {"seq_op": mixer, "n_layer": layers},
        "training": {
            "learning_rate": 1e-4,
            "data_kwargs": {"device": "cpu"},
            "save_every_steps": 1000,
            "resume_id": None,
            "dtype": "float32",
            "l1_reg": 0,
            "ema_decay": 0,
            "ema_lambda": 0,
            "track_grad": False,
        },
    }
    arguments = read_yaml(folder / f"conf/least_squares/{config}.yaml")
    arguments = merged(merged(arguments, schema_defaults), changes or {})

    def predict(model: nn.Module, batch: Batch) -> Tensor:
        weights: Tensor = model(torch.cat([batch.prompt.x, batch.prompt.y], dim=2))[:, -1:, :DIM]
        return batch.prompt.query @ weights.mT

    return _theirs(folder, arguments, limit, predict if evaluates else None)


def _with_query(batch: Batch) -> tuple[Tensor, Tensor]:
    """The inputs (B, N+1, D), the query last, and the outputs (B, N+1) with 0 in its place."""
    prompt = batch.prompt
    x = torch.cat([prompt.x, prompt.query], dim=1)
    y = torch.cat([prompt.y[:, :, 0], prompt.y.new_zeros(len(prompt.y), 1)], dim=1)
    return x, y


def _theirs(
    folder: Path, arguments: dict[str, Any], limit: float, predict: Callable[..., Tensor] | None
) -> Watch:
    """Run the clone's `train(model, args)` under a watch, which evaluates only with `predict`."""
    # A run of theirs called a test writes no log and no checkpoint.
    arguments = merged(arguments, {"test_run": True, "out_dir": str(folder / "no such folder")})
    with _importable(folder):
        train, models = importlib.import_module("train"), importlib.import_module("models")
    torch.manual_seed(0)
    watch = Watch(limit)
    args = Arguments(arguments)
    model = models.build_model(args.model)
    model.train()

    def evaluated(batch: Batch) -> Tensor:
        assert predict is not None
        model.eval()
        prediction = predict(model, batch)
        model.train()
        return prediction

    watch.predict = evaluated if predict else None
    with (
        mock.patch.object(train, "tqdm", watch.bar),
        # Garg et al. move every batch to a GPU.
        mock.patch.object(torch.Tensor, "cuda", lambda tensor: tensor),
    ):
        train.train(model, args)
    return watch


class Arguments(dict[str, Any]):
    """A nested table whose values are attributes too, as the papers' code reads its arguments."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        return Arguments(value) if isinstance(value, dict) else value


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Put the folder first on the path, and mocks where unused libraries are missing."""
    missing = [name for name in UNUSED if importlib.util.find_spec(name) is None]
    sys.modules.update({name: mock.MagicMock(__spec__=None) for name in missing})
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in missing:
            del sys.modules[name]


def read_yaml(path: Path) -> dict[str, Any]:
    """A file of arguments with those that it inherits, later ones first."""
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    arguments: dict[str, Any] = {}
    for name in content.pop("inherit", []):
        arguments = merged(arguments, read_yaml(path.parent / name))
    return merged(arguments, content)


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables; where both have a value, that of the second."""
    both = dict(first)
    for key, value in second.items():
        nested = isinstance(value, dict) and isinstance(both.get(key), dict)
        both[key] = merged(both[key], value) if nested else value
    return both
