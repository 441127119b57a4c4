"""Plan: a spec with everything that it names found, validated and loaded; nothing has run yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from ..api.architecture import Architecture, Construction, Solver
from ..api.config import Config, parse_config
from ..api.errors import UsageError, unknown
from ..api.grader import Grader
from ..api.metric import Metric
from ..api.recipe import Recipe
from ..api.spec import Origin, ResolvedSpec, RunSpec
from ..api.task import Task
from ..files import file_digest
from ..plugins import Plugin, host
from ..training.checkpoints import load_weights
from ..training.optimizers.choice import check_optimizer
from .grading import Grading

States = dict[int | None, dict[str, Tensor]]


@dataclass(frozen=True)
class Plan:
    """One run, ready to go.

    `states` are the given weights, by seed; None holds for every seed. They are `partial` where a
    construction may leave parameters to the initialization.
    """

    request: RunSpec
    spec: ResolvedSpec
    task: Task[Any]
    architecture: Architecture
    config: Config
    recipe: Recipe | None = None
    states: States = field(default_factory=dict)
    partial: bool = False
    metrics: tuple[Metric, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    grader: Callable[[], Grader] | None = None

    def grading(self) -> Grading | None:
        """The grader, ready for one run; raises UsageError for what it lacks, such as a key."""
        if self.grader is None:
            return None
        grader = self.grader()
        grader.prepare(self.completions(), self.request.grader_budget)
        return Grading(grader)

    def completions(self) -> int:
        """About how many completions a grader will get."""
        models = len(self.spec.seeds) or len(self.states) or 1
        return self.task.completions(models, self.spec.eval_prompts)

    @property
    def train_key(self) -> str:
        """Plans with one key can be trained by one program; see `replica_args` of both."""
        return self.spec.train_key(self.task.replica_args, self.architecture.replica_args)


@dataclass(frozen=True)
class _Given:
    """Weights that a run starts from: state dicts, and the model arguments that go with them."""

    states: States = field(default_factory=dict)
    model_args: dict[str, Any] = field(default_factory=dict)
    digest: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    partial: bool = False


def resolve(request: RunSpec) -> Plan:
    """Find, validate and load all that `request` names; raises UsageError for what can't be."""
    task_class: type[Task[Any]] = host().load("task", request.task, Task)
    architecture: Architecture = host().load("model", request.model, Architecture)()
    recipe = _recipe(request, task_class)
    task = _task(request, task_class, recipe)
    origin = _origin(request, architecture)
    given = _given(request, architecture, task, origin)
    config = _model_config(request, architecture, recipe, given, origin)
    _require_support(request, architecture, config, task)
    metrics = tuple(_metric(name, task) for name in request.metrics)
    grader, grader_args = _grader(request, task)
    trained = origin == "trained"
    spec = ResolvedSpec(
        **{
            **request.model_dump(),
            "model_args": config.model_dump(mode="json"),
            "task_args": task.config.model_dump(mode="json"),
            "task_version": task.version,
            "origin": origin,
            "weights": request.weights if origin in {"constructed", "loaded"} else None,
            "weights_args": given.args,
            "recipe": request.recipe if trained else "",
            "recipe_args": recipe.model_dump(mode="json") if trained else {},
            "seeds": request.seeds if trained else (),
            "checkpoint_digest": given.digest,
            "grader_args": grader_args,
            "grader_budget": None,
            "data_digest": task.data_digest,
        }
    )
    return Plan(
        request=request,
        spec=spec,
        task=task,
        architecture=architecture,
        config=config,
        recipe=recipe if trained else None,
        states=given.states,
        partial=given.partial,
        metrics=metrics,
        plugins=tuple(_participants(request, trained and request.recipe not in task.recipes)),
        grader=grader,
    )


def _recipe(request: RunSpec, task_class: type[Task[Any]]) -> Recipe:
    own = task_class.recipes
    if request.recipe in own:
        recipe = own[request.recipe]
    else:
        known = [entry.name for _, entry in host().entries("recipe")]
        if request.recipe not in known:
            raise unknown("recipe", request.recipe, [*own, *known])
        recipe = host().load("recipe", request.recipe, Recipe)
    for option in ("model_args", "task_args"):
        if option in request.recipe_args:
            raise UsageError(f"recipe_args: {option} are given by --{option.replace('_', '-')}")
    values = {**recipe.model_dump(), **request.recipe_args}
    recipe = parse_config(Recipe, values, f"recipe {request.recipe}")
    arguments = check_optimizer(recipe)
    return recipe.model_copy(update={"optimizer_args": arguments})


def _task(request: RunSpec, task_class: type[Task[Any]], recipe: Recipe) -> Task[Any]:
    values = {**_known(recipe.task_args, task_class.Config), **request.task_args}
    return task_class(parse_config(task_class.Config, values, f"task {request.task}"))


def _origin(request: RunSpec, architecture: Architecture) -> Origin:
    """What the model's weights are; raises UsageError for options that don't go together."""
    weights = request.weights
    if isinstance(architecture, Solver):
        for option in ("weights", "init", "freeze", "perturb"):
            if getattr(request, option):
                raise UsageError(f"{request.model} is a solver: --{option} does not apply")
        return "solver"
    if request.init and weights not in {None, "trained"}:
        raise UsageError("--weights says what is evaluated, --init what is trained: choose one")
    for option in ("freeze", "perturb"):
        if getattr(request, option) and not request.init:
            raise UsageError(f"--{option} needs --init")
    named = request.init or weights
    if request.weights_args and named not in architecture.constructions:
        raise UsageError("--weights-args are a construction's: name one by --weights or --init")
    if weights in {None, "trained"}:
        return "trained"
    return "constructed" if weights in architecture.constructions else "loaded"


def _given(request: RunSpec, architecture: Architecture, task: Task[Any], origin: Origin) -> _Given:
    """The weights that the request names, from a formula or a file."""
    named = request.init or (request.weights if origin in {"constructed", "loaded"} else None)
    if named is None:
        return _Given()
    construction = architecture.constructions.get(named)
    if construction is not None:
        return _constructed(named, construction, request, task)
    path = Path(named)
    if not path.is_file():
        known = ["trained", *architecture.constructions]
        option = "init" if request.init else "weights"
        raise UsageError(f"--{option}: no such file, and {unknown('construction', named, known)}")
    weights = load_weights(path)
    if weights.model not in {None, request.model}:
        raise UsageError(f"{path} holds the weights of {weights.model}, not of {request.model}")
    if origin == "trained" and None not in weights.states and len(weights.states) > 1:
        missing = [seed for seed in request.seeds if seed not in weights.states]
        if missing:
            raise UsageError(f"{path} has no weights of seed {missing[0]}")
    if origin == "trained" and len(weights.states) == 1:
        (state,) = weights.states.values()
        return _Given({None: state}, weights.model_args, file_digest(path))
    return _Given(weights.states, weights.model_args, file_digest(path))


def _constructed(
    name: str, construction: Construction, request: RunSpec, task: Task[Any]
) -> _Given:
    args = parse_config(construction.Config, request.weights_args, f"construction {name}")
    model_args, state = construction.build(task.signature, args, task)
    return _Given({None: state}, model_args, args=args.model_dump(mode="json"), partial=True)


def _model_config(
    request: RunSpec, architecture: Architecture, recipe: Recipe, given: _Given, origin: Origin
) -> Config:
    """Defaults, then the recipe's arguments, then those of given weights, then the user's.

    What a construction sets is part of its formula: raises UsageError where the user's differ.
    """
    formula = given.model_args if given.digest is None else {}
    for name, value in request.model_args.items():
        if name in formula and value != formula[name]:
            raise UsageError(f"{name}={value}: the construction has {name}={formula[name]}")
    from_recipe = _known(recipe.model_args, architecture.Config) if origin == "trained" else {}
    values = {**from_recipe, **given.model_args, **request.model_args}
    return parse_config(architecture.Config, values, f"model {request.model}")


def _require_support(
    request: RunSpec, architecture: Architecture, config: Config, task: Task[Any]
) -> None:
    reason = architecture.supports(task.signature, config)
    if reason is not None:
        raise UsageError(f"{request.model} can't do {request.task}: {reason}")


def _metric(name: str, task: Task[Any]) -> Metric:
    metric: Metric = host().load("metric", name, Metric)()
    reason = metric.supports(task)
    if reason is not None:
        raise UsageError(f"metric {name} does not apply to {task.name}: {reason}")
    return metric


def _grader(
    request: RunSpec, task: Task[Any]
) -> tuple[Callable[[], Grader] | None, dict[str, Any]]:
    """What makes the grader, and those of its arguments that a score depends on."""
    if request.grader is None:
        for option in ("grader_args", "grader_budget"):
            if getattr(request, option):
                raise UsageError(f"--{option.replace('_', '-')} needs --grader")
        return None, {}
    found: type[Grader] = host().load("grader", request.grader, Grader)
    if not task.gradable:
        raise UsageError(f"{task.name} has nothing to grade: --grader is for tasks that write text")
    config = parse_config(found.Config, request.grader_args, f"grader {request.grader}")
    values = config.model_dump(mode="json")
    return partial(found, config), {k: v for k, v in values.items() if k not in found.operational}


def _participants(request: RunSpec, with_recipe: bool) -> Iterator[Plugin]:
    names = [("task", request.task), ("model", request.model)]
    names += [("recipe", request.recipe)] if with_recipe else []
    names += [("metric", name) for name in request.metrics]
    names += [("grader", request.grader)] if request.grader else []
    seen = []
    for kind, name in names:
        plugin, _ = host().provider(kind, name)
        if plugin.name not in seen:
            seen.append(plugin.name)
            yield plugin


def _known(values: Mapping[str, Any], config: type[Config]) -> dict[str, Any]:
    """The recipe's arguments that this configuration has: a recipe serves many."""
    return {name: value for name, value in values.items() if name in config.model_fields}
