"""`iclbench run`: train, construct or load models, evaluate them, write records, print a table."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import IclbenchError, UsageError
from ..runs.arguments import parse_arguments, parse_seeds
from .common import Device, Engine, Out, Strict, engine_name, sound_host

if TYPE_CHECKING:
    from ..api.record import Record
    from ..runs.plan import Plan
    from ..runs.run import Settings

Arguments = Annotated[
    list[str] | None, typer.Option(metavar="K=V,…", help="Arguments, or @file.toml; repeatable.")
]


def run(
    model: Annotated[str, typer.Option(metavar="NAME[,NAME]", help="Models to run.")],
    task: Annotated[str, typer.Option(metavar="NAME[,NAME]", help="Tasks to run them on.")],
    weights: Annotated[
        str | None,
        typer.Option(metavar="trained|CONSTRUCTION|PATH", help="Where weights are from."),
    ] = None,
    weights_args: Arguments = None,
    init: Annotated[
        str | None, typer.Option(metavar="CONSTRUCTION|PATH", help="What training starts from.")
    ] = None,
    freeze: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Parameters to keep; repeatable.")
    ] = None,
    perturb: Annotated[float, typer.Option(metavar="SIGMA", help="Noise on --init.")] = 0.0,
    recipe: Annotated[str, typer.Option(metavar="NAME", help="How to train.")] = "quick",
    model_args: Arguments = None,
    task_args: Arguments = None,
    recipe_args: Arguments = None,
    seeds: Annotated[
        str, typer.Option(metavar="N|A,B", help="How many seeds, or which: 5, or 3,7, or [7].")
    ] = "5",
    device: Device = "auto",
    dtype: Annotated[
        str, typer.Option(metavar="float32|float64", help="Of all arithmetic.")
    ] = "float32",
    metrics: Annotated[
        str, typer.Option(metavar="NAME[,NAME]", help="Further metrics to measure.")
    ] = "",
    grader: Annotated[
        str | None, typer.Option(metavar="NAME", help="What grades the endings a model writes.")
    ] = None,
    grader_args: Arguments = None,
    grader_budget: Annotated[
        float | None, typer.Option(metavar="USD", help="What grading a run may cost at most.")
    ] = None,
    eval_prompts: Annotated[int, typer.Option(help="Prompts to evaluate on.")] = 2048,
    eval_seed: Annotated[int, typer.Option(help="Seed of the evaluation prompts.")] = 0,
    eval_batch: Annotated[int, typer.Option(min=1, help="Prompts a model sees at once.")] = 1024,
    out: Out = "results",
    force: Annotated[bool, typer.Option("--force", help="Run again what has a record.")] = False,
    resume: Annotated[bool, typer.Option(help="Continue a training that was cut off.")] = True,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0, help="Time between checkpoints of a training.")
    ] = 30.0,
    engine: Engine = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run.")] = False,
    strict: Strict = False,
) -> None:
    """Run models on tasks and print a ranked table; what has a record is not run again."""
    plugins = sound_host(strict)
    common = {
        "weights": weights,
        "weights_args": parse_arguments(weights_args or [], "--weights-args"),
        "init": init,
        "freeze": tuple(freeze or ()),
        "perturb": perturb,
        "recipe": recipe,
        "model_args": parse_arguments(model_args or [], "--model-args"),
        "task_args": parse_arguments(task_args or [], "--task-args"),
        "recipe_args": parse_arguments(recipe_args or [], "--recipe-args"),
        "seeds": parse_seeds(seeds),
        "dtype": dtype,
        "eval_prompts": eval_prompts,
        "eval_seed": eval_seed,
        "metrics": tuple(_names(metrics)),
        "grader": grader,
        "grader_args": parse_arguments(grader_args or [], "--grader-args"),
        "grader_budget": grader_budget,
    }
    plans = _resolve(_names(model), _names(task), common)

    from ..runs.run import Settings

    settings = Settings(
        Path(out), device, force, resume, checkpoint_seconds, eval_batch, engine_name(engine)
    )
    if dry_run:
        _describe(plans, settings)
        return
    records, code = _run_all(plans, settings)
    _print_boards(records, settings.out)
    if strict:
        plugins.require_sound()
    if code:
        raise typer.Exit(code)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _resolve(models: list[str], tasks: list[str], common: dict[str, Any]) -> list[Plan]:
    """All plans, so that a bad one is known before any time is spent."""
    from ..api.config import parse_config
    from ..api.spec import RunSpec
    from ..runs.plan import resolve

    if not models or not tasks:
        raise UsageError("--model and --task must name something")
    plans: dict[str, Plan] = {}
    for task in tasks:
        for model in models:
            own = {
                "model_args": scoped(common["model_args"], model, models, "--model-args"),
                "task_args": scoped(common["task_args"], task, tasks, "--task-args"),
            }
            request = {**common, **own, "model": model, "task": task}
            plan = resolve(parse_config(RunSpec, request, "run"))
            plans.setdefault(plan.spec.id, plan)
    return list(plans.values())


def scoped(args: dict[str, Any], name: str, names: list[str], option: str) -> dict[str, Any]:
    """The arguments for `name`: those without a prefix, and its own, given as `NAME.key`."""
    found = {key: value for key, value in args.items() if "." not in key}
    for key, value in args.items():
        owner, dot, rest = key.partition(".")
        if dot and owner not in names:
            raise UsageError(f"{option}: {key!r} is for {owner!r}, which is not run")
        if dot and owner == name:
            found[rest] = value
    return found


def _describe(plans: list[Plan], settings: Settings) -> None:
    from ..devices import find_device
    from ..runs.store import RecordStore

    find_device(settings.device)
    store = RecordStore(settings.out)
    for plan in plans:
        spec = plan.spec
        exists = store.path(spec).exists() and not settings.force
        action = {
            "trained": f"train {len(spec.seeds)} seeds for {spec.recipe_args.get('steps')} steps",
            "constructed": f"build {spec.weights}",
            "solver": "solve",
            "loaded": f"load {spec.weights}",
        }[spec.origin]
        typer.echo(f"{spec.id}  {spec.model} on {spec.task}: {'done before' if exists else action}")
        if plan.grader is not None:
            typer.echo(f"  {_grading(plan)}")
        typer.echo(spec.model_dump_json(indent=2))


def _grading(plan: Plan) -> str:
    """How much is graded, and what that costs before anything is known of the texts."""
    from ..api.grader import Completion

    assert plan.grader is not None
    n = plan.completions()
    least = plan.grader().estimate([Completion("", "")] * n)
    cost = "at a cost that is not known" if least is None else f"from {least:.4f} USD on"
    return f"grade about {n} endings by {plan.spec.grader}, " + (cost if least != 0 else "free")


def _run_all(plans: list[Plan], settings: Settings) -> tuple[list[Record], int]:
    """Every plan's record, and the exit code: a run that fails does not stop the next."""
    from ..plugins import host
    from ..runs.run import run_plans
    from .progress import ProgressDisplay

    records: list[Record] = []
    code = 0
    with ProgressDisplay() as display:
        host().observe(display, "progress")
        try:
            for plan in plans:
                try:
                    records += run_plans([plan], settings)
                except Exception as error:
                    if os.environ.get("ICLBENCH_DEBUG"):
                        raise
                    known = isinstance(error, IclbenchError)
                    code = max(code, error.exit_code if isinstance(error, IclbenchError) else 1)
                    where = f"{plan.spec.model} on {plan.spec.task}"
                    reason = str(error) if known else f"{error!r} (ICLBENCH_DEBUG=1 shows where)"
                    print(f"iclbench: error: {where}: {reason}", file=sys.stderr)
        finally:
            host().forget(display)
    return records, code


def _print_boards(records: list[Record], out: Path) -> None:
    from ..leaderboards.board import boards
    from ..leaderboards.tables import render
    from ..runs.store import RecordStore

    for board in boards(records, RecordStore(out)):
        typer.echo("\n" + render(board))
