"""Plan: a validated request with everything that it names loaded. Nothing has run yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ..api.architecture import Architecture
from ..api.config import Config, parse_config
from ..api.digits import MetricKind
from ..api.errors import PluginError, UnsupportedError, UsageError, given_reason, unknown
from ..api.graded_task import GradedTask
from ..api.grader import Grader
from ..api.metric import Metric
from ..api.recipe import Recipe
from ..api.record import Tuning
from ..api.spec import Origin, ResolvedSpec, RunSpec, flag, spec_options
from ..api.task import Task
from ..discovery import Plugin
from ..plugins import host
from ..precision import default_modes
from ..training.optimizers.choice import same_optimizer, with_whole_optimizer
from ..training.schedules import require_used
from .fixed_steps import FixedSteps
from .grading import Grading
from .origins import GivenWeights, States, given_weights, origin_of
from .participants import each_once, measuring_plugins, training_plugins
from .recipe_arguments import config_with, split_by_use
from .sizes import bounded_model, require_room, require_small_arguments, require_storable
from .statistics import GRADE


@dataclass(frozen=True)
class Plan:
    """One run, ready to start.

    `states` are the given weights, see `GivenWeights`; they may be `partial`. `recipe` is None
    where nothing is trained. `fixed` has the steps that an earlier training's budget paid for;
    None: they are measured. `grader` makes the grader, if one was requested. `tuning` is the search
    that chose some of the arguments. `answers` are those of a language model by question, where a
    record holds them. `refused` are the recipe's arguments that the model refuses, with the
    reasons: it keeps its defaults. A training follows from the plugins in `trained_by` alone.
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
    trained_by: tuple[Plugin, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    grader: Callable[[], Grader] | None = None
    fixed: FixedSteps | None = None
    tuning: Tuning | None = None
    answers: Mapping[str, str] | None = None
    refused: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kinds(self) -> dict[str, MetricKind]:
        """What is known of the values of metrics: those that are errors, and fractions."""
        fractions = set(self.task.fractions).union(*(metric.fractions for metric in self.metrics))
        if self.grader is not None:
            fractions |= {f"{GRADE}{name}" for name in self.grader().fractions}
        return {**dict.fromkeys(fractions, "fraction"), **self.task.errors}

    def prepare_grading(self) -> Grading | None:
        """A grader prepared for one run; raises UsageError for what it lacks, such as a key."""
        if self.grader is None:
            return None
        grader = self.grader()
        grader.prepare(self.completions(), self.request.grader_budget)
        return Grading(grader)

    def completions(self) -> int:
        """About how many completions the grader will receive."""
        models = len(self.spec.seeds) or len(self.states) or 1
        assert isinstance(self.task, GradedTask)
        return self.task.completions(models, self.spec.eval_prompts)

    @property
    def remarks(self) -> list[str]:
        """What the user should know of the plan, a line each."""
        spec = self.spec
        return [
            f"{spec.model} on {spec.task}: recipe {spec.recipe} sets {name}, which {spec.model} "
            f"refuses ({reason}); it keeps its default"
            for name, reason in self.refused.items()
        ]

    def command(self) -> str:
        """The shortest command that makes the run: without options that would change nothing.

        A recipe stays, since the task takes arguments from it.
        """
        unused = {"shift"}
        if self.recipe is None:
            unused |= {name for name, option in spec_options().items() if option.training}
        defaults = {name: RunSpec.model_fields[name].default for name in unused - {"recipe"}}
        return without_folders(self.request).model_copy(update=defaults).command()

    @property
    def train_key(self) -> str:
        """Plans with the same key can be trained by one program; see `replica_args` of both."""
        return self.spec.train_key(self.task.replica_args, self.architecture.replica_args)


@default_modes()
def resolve(request: RunSpec) -> Plan:
    """Find, load and validate all that `request` names; raises UsageError for what can't run."""
    task_class: type[Task[Any]] = host().load("task", request.task, Task)
    architecture: Architecture = host().load("model", request.model, Architecture)()
    recipe = _recipe(request, task_class)
    task = _task(request, task_class, recipe)
    origin = origin_of(request, architecture)
    with bounded_model(request.model):
        given = given_weights(request, architecture, task, origin)
    models = len(request.seeds) if origin == "trained" else max(1, len(given.states))
    require_storable(models, request.eval_prompts, task)
    config, refused = _model_config(request, architecture, recipe, given, origin)
    if origin == "trained":
        size = recipe.batch * recipe.chunk
        require_room(size, task.signature, f"recipe {request.recipe}: a chunk")
        _require_dtype(request, recipe)
    _require_supported(request, architecture, task, config)
    metrics = tuple(_metric(name, task) for name in request.metrics)
    grader, grader_args = _grader(request, task)
    trained = origin == "trained"
    untrained = {name for name, option in spec_options().items() if option.training}
    recorded = without_folders(request)
    own_recipe = request.recipe in task.recipes
    training = training_plugins(
        request, architecture.uses(config), with_recipe=trained and not own_recipe
    )
    spec = ResolvedSpec(
        **{
            **recorded.model_dump(exclude=None if trained else untrained),
            "model_args": config.model_dump(mode="json"),
            "task_args": task.config.model_dump(mode="json"),
            "task_version": task.version,
            "origin": origin,
            "weights": recorded.weights if origin in {"constructed", "loaded"} else None,
            "weights_args": given.args,
            "recipe_args": _recipe_args(request, recipe) if trained else {},
            "checkpoint_digest": given.digest,
            "grader_args": grader_args,
            "grader_budget": None,
            "shift": (),
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
        states=given.states_for(architecture, task.signature, config),
        partial=given.partial,
        metrics=metrics,
        trained_by=training,
        plugins=each_once([*training, *measuring_plugins(request)]),
        grader=grader,
        refused=refused,
    )


def without_folders(request: RunSpec) -> RunSpec:
    """The request as a record holds it: of a checkpoint's absolute path, its last part.

    The folder means nothing on another machine, and may tell who ran it.
    """
    paths = {name: Path(value) for name in ("weights", "init") if (value := getattr(request, name))}
    names = {name: path.name for name, path in paths.items() if path.is_absolute()}
    return request.model_copy(update=names)


def _recipe(request: RunSpec, task_class: type[Task[Any]]) -> Recipe:
    """The task's own recipe of that name or any plugin's, with the user's arguments."""
    if request.recipe in task_class.recipes:
        recipe = task_class.recipes[request.recipe]
    else:
        known = [entry.name for _, entry in host().entries("recipe")]
        if request.recipe not in known:
            raise unknown("recipe", request.recipe, [*task_class.recipes, *known])
        recipe = host().load("recipe", request.recipe, Recipe)
    for name in ("model_args", "task_args"):
        if name in request.recipe_args:
            raise UsageError(f"recipe_args: {name} are given by {flag(name)}")
    named, given = recipe, request.recipe_args
    recipe = parse_config(Recipe, {**named.model_dump(), **given}, f"recipe {request.recipe}")
    if "optimizer_args" not in given and not same_optimizer(recipe.optimizer, named.optimizer):
        recipe = recipe.model_copy(update={"optimizer_args": {}})
    require_used(recipe, named)
    if request.budget is not None:
        if "steps" in request.recipe_args:
            raise UsageError("a budget sets the steps: give --budget or steps=…, not both")
        recipe = recipe.model_copy(update={"schedule_steps": recipe.schedule_steps or recipe.steps})
    return with_whole_optimizer(recipe)


def _require_supported(
    request: RunSpec, architecture: Architecture, task: Task[Any], config: Config
) -> None:
    """Raise UnsupportedError where the model can't do the task, or not in that dtype."""
    supported = architecture.supports(task.signature, config)
    reason = given_reason(supported, f"supports() of {request.model}")
    if reason is not None:
        raise UnsupportedError(f"{request.model} can't do {request.task}: {reason}")
    if request.dtype == "float64" and not architecture.float64:
        raise UnsupportedError(f"{request.model} can't run in float64: it computes in float32")


def _require_dtype(request: RunSpec, recipe: Recipe) -> None:
    """Raise UsageError for float64 with mixed precision, which torch would leave out silently."""
    if request.dtype == "float64" and recipe.autocast != "none":
        raise UsageError(
            f"autocast={recipe.autocast} trains in float32: leave out --dtype float64, or add "
            "--recipe-args autocast=none"
        )


def _recipe_args(request: RunSpec, recipe: Recipe) -> dict[str, Any]:
    """Every argument of the recipe, without the steps where a budget sets them."""
    left_out = {"steps"} if request.budget is not None else set()
    return recipe.model_dump(mode="json", exclude=left_out)


def _task(request: RunSpec, task_class: type[Task[Any]], recipe: Recipe) -> Task[Any]:
    """The task with the recipe's arguments, which the user's override."""
    known = {n: v for n, v in recipe.task_args.items() if n in task_class.Config.model_fields}
    values = {**known, **request.task_args}
    config = parse_config(task_class.Config, values, f"task {request.task}")
    require_small_arguments(config, f"task {request.task}")
    task = task_class(config)
    for stage in recipe.stages:
        task.at_stage(stage.task_args)  # raises UsageError for what a stage can't set
    size = len(task.cases) * request.eval_prompts
    require_room(size, task.signature, f"task {request.task}")
    return task


def _model_config(
    request: RunSpec,
    architecture: Architecture,
    recipe: Recipe,
    given: GivenWeights,
    origin: Origin,
) -> tuple[Config, dict[str, str]]:
    """Defaults, overridden by the recipe's arguments, then the given weights', then the user's.

    Beside it are the recipe's arguments that the model refuses, with the reasons. What a
    construction sets is part of its formula: raises UsageError where the user's differ.
    """
    formula = given.model_args if given.digest is None else {}
    for name, value in request.model_args.items():
        if name in formula and value != formula[name]:
            raise UsageError(f"{name}={value}: the construction has {name}={formula[name]}")
    explicit = {**given.model_args, **request.model_args}
    from_recipe = architecture.of_recipe(recipe.model_args) if origin == "trained" else {}
    taken, refused = split_by_use(from_recipe, architecture.Config, explicit)
    owner = f"model {request.model}"
    config = config_with(architecture.Config, (request.recipe, taken), explicit, owner)
    require_small_arguments(config, owner)
    return config, refused


def _metric(name: str, task: Task[Any]) -> Metric:
    metric: Metric = host().load("metric", name, Metric)()
    measuring = ("score", "compute", "analysis")
    if all(getattr(type(metric), method) is getattr(Metric, method) for method in measuring):
        raise PluginError(f"metric {name} measures nothing: define one of {', '.join(measuring)}")
    reason = given_reason(metric.supports(task), f"supports() of metric {name}")
    if reason is not None:
        raise UsageError(f"metric {name} does not apply to {task.name}: {reason}")
    return metric


def _grader(
    request: RunSpec, task: Task[Any]
) -> tuple[Callable[[], Grader] | None, dict[str, Any]]:
    """A function that makes the grader, and those of its arguments that a score depends on."""
    if request.grader is None:
        for name in ("grader_args", "grader_budget"):
            if getattr(request, name):
                raise UsageError(f"{flag(name)} needs --grader")
        return None, {}
    grader: type[Grader] = host().load("grader", request.grader, Grader)
    if not isinstance(task, GradedTask):
        raise UsageError(f"{task.name} has nothing to grade: --grader is for tasks that write text")
    config = parse_config(grader.Config, request.grader_args, f"grader {request.grader}")
    values = config.model_dump(mode="json")
    return partial(grader, config), {k: v for k, v in values.items() if k not in grader.operational}
