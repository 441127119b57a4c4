"""`iclbench run`: run models on tasks, write their records, print a ranked table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import IclbenchError, Interrupted, UsageError
from ..api.options import parse_names
from ..console import report
from .common import Device, Engine, Out, Strict, engine_name, sound_host, training_cost
from .interruption import stops_on_signals
from .spec_options import with_spec_options

if TYPE_CHECKING:
    from ..api.record import Record
    from ..runs.plan import Plan
    from ..runs.settings import Settings


@with_spec_options
def run(
    model: Annotated[str, typer.Option(metavar="NAME[,NAME]", help="Models to run.")],
    task: Annotated[str, typer.Option(metavar="NAME[,NAME]", help="Tasks to run them on.")],
    spec: dict[str, Any],
    device: Device = "auto",
    eval_batch: Annotated[
        int, typer.Option(min=1, metavar="N", help="Prompts evaluated at once.")
    ] = 1024,
    out: Out = "results",
    force: Annotated[
        bool, typer.Option("--force", help="Run again even where a record exists.")
    ] = False,
    resume: Annotated[bool, typer.Option(help="Continue interrupted training.")] = True,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Time between training checkpoints.")
    ] = 30.0,
    engine: Engine = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run.")] = False,
    strict: Strict = False,
) -> None:
    """Run models on tasks and print a ranked table. Existing records are not run again.

    With several models or tasks, NAME.key=value in --model-args or --task-args applies to that
    one alone.
    """
    plugins = sound_host(strict)
    with stops_on_signals(_continuation(resume, force)):
        plans = _resolve(parse_names(model), parse_names(task), spec)

        from ..runs.settings import Settings

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


def _continuation(resume: bool, force: bool) -> str:
    """How to go on after an interruption."""
    if force:
        return "with --force the same command starts afresh"
    return f"the same command{'' if resume else ' without --no-resume'} continues"


def _resolve(models: list[str], tasks: list[str], spec: dict[str, Any]) -> list[Plan]:
    """All plans, so that a bad request is refused before any time is spent."""
    from ..api.config import parse_config
    from ..api.spec import RunSpec
    from ..runs.plan import resolve

    if not models or not tasks:
        raise UsageError("--model and --task need at least one name")
    plans: dict[str, Plan] = {}
    for task in tasks:
        for model in models:
            request = {
                **spec,
                "model": model,
                "task": task,
                "model_args": scoped(spec.get("model_args", {}), model, models, "--model-args"),
                "task_args": scoped(spec.get("task_args", {}), task, tasks, "--task-args"),
            }
            plan = resolve(parse_config(RunSpec, request, "run"))
            plans.setdefault(plan.spec.id, plan)
    return list(plans.values())


def scoped(args: dict[str, Any], name: str, names: list[str], option: str) -> dict[str, Any]:
    """The arguments that apply to `name`: `key` to all names, `NAME.key` to one of them.

    Raises UsageError for the arguments of a name that is not run.
    """
    applying = {key: value for key, value in args.items() if "." not in key}
    for key, value in args.items():
        owner, dot, rest = key.partition(".")
        if dot and owner not in names:
            raise UsageError(f"{option}: {key!r} is for {owner!r}, which is not run")
        if dot and owner == name:
            applying[rest] = value
    return applying


def _describe(plans: list[Plan], settings: Settings) -> None:
    from ..devices import find_device
    from ..runs.store import RecordStore

    find_device(settings.device)
    store = RecordStore(settings.out)
    for plan in plans:
        spec = plan.spec
        exists = store.path(spec).exists() and not settings.force
        action = {
            "trained": f"train {training_cost(spec)}",
            "constructed": f"build {spec.weights}",
            "solver": "solve",
            "loaded": f"load {spec.weights}",
        }[spec.origin]
        typer.echo(
            f"{spec.id}  {spec.model} on {spec.task}: {'record exists' if exists else action}"
        )
        if plan.grader is not None:
            typer.echo(f"  {_grading(plan)}")
        typer.echo(spec.model_dump_json(indent=2))


def _grading(plan: Plan) -> str:
    """How many endings are graded, and a lower bound of the cost, as their texts are unknown."""
    from ..api.grader import Completion

    assert plan.grader is not None
    count = plan.completions()
    least = plan.grader().estimate([Completion("", "")] * count)
    cost = "at an unknown cost" if least is None else f"for at least {least:.4f} USD"
    return f"grade about {count} endings with {plan.spec.grader}, " + (
        cost if least != 0 else "free"
    )


def _run_all(plans: list[Plan], settings: Settings) -> tuple[list[Record], int]:
    """Every plan's record, and the exit code. A run that fails does not stop the next."""
    from ..plugins import host
    from ..runs.run import run_plans
    from .progress import ProgressDisplay

    records: list[Record] = []
    code = 0
    with ProgressDisplay() as display:
        host().observe(display, "progress")
        try:
            for number, plan in enumerate(plans, start=1):
                try:
                    records += run_plans([plan], settings)
                except Interrupted as error:
                    if number == len(plans):
                        raise
                    rest = f"{len(plans) - number} more not started"
                    message = "; ".join(filter(None, [str(error), rest]))
                    raise Interrupted(error.signal_number, message) from None
                except Exception as error:
                    if os.environ.get("ICLBENCH_DEBUG"):
                        raise
                    known = isinstance(error, IclbenchError)
                    code = max(code, error.exit_code if isinstance(error, IclbenchError) else 1)
                    run_name = f"{plan.spec.model} on {plan.spec.task}"
                    reason = str(error) if known else f"{error!r} (ICLBENCH_DEBUG=1 shows where)"
                    report(f"error: {run_name}: {reason}")
        finally:
            host().forget(display)
    return records, code


def _print_boards(records: list[Record], out: Path) -> None:
    from ..leaderboards.board import boards
    from ..leaderboards.tables import render
    from ..runs.store import RecordStore

    for board in boards(records, RecordStore(out)):
        typer.echo("\n" + render(board))
