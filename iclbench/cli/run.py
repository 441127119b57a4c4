"""`iclbench run`: run models on tasks, write their records, print a ranked table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import UsageError
from ..api.options import parse_names
from ..display.table import Output
from ..runs.record_weights import with_files_of_weights
from .boards_of_runs import print_boards_of, require_columns_of_boards, say_what_next
from .common import (
    CheckpointSeconds,
    Columns,
    Device,
    Engine,
    Out,
    Sort,
    Strict,
    Style,
    SuiteName,
    complete_names,
    end_with,
    exit_code,
    show_table,
    sound_host,
)
from .interruption import stops_on_signals
from .paths import usable_path
from .running import run_all
from .scopes import OWNER, errors_of_options, scoped
from .shifting import show_shifted
from .spec_options import training_options, with_spec_options
from .suites import SuiteRun
from .tracker_options import with_tracker_options
from .tuning import Preparation, TrialsOfTune

if TYPE_CHECKING:
    from ..runs.plan import Plan

Models = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,NAME]", help="Models to run.", autocompletion=complete_names("model")
    ),
]
Tasks = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,NAME]", help="Tasks to run them on.", autocompletion=complete_names("task")
    ),
]
Tuned = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Tunings to use, or folders of them; repeatable.",
        parser=usable_path,
    ),
]
EvalBatch = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Prompts per evaluation batch; default: 128 on a CPU, 1024 on a GPU.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Run again even if a record exists.")]
Resume = Annotated[bool, typer.Option(help="Continue interrupted training.")]


@with_spec_options
@with_tracker_options
def run(
    context: typer.Context,
    *,
    model: Models = None,
    task: Tasks = None,
    suite: SuiteName = None,
    spec: dict[str, Any],
    tuned: Tuned = None,
    tune: Annotated[bool, typer.Option("--tune", help="Tune before training.")] = False,
    trials: TrialsOfTune = None,
    device: Device = "auto",
    eval_batch: EvalBatch = None,
    out: Out = "results",
    force: Force = False,
    resume: Resume = True,
    checkpoint_seconds: CheckpointSeconds = 30.0,
    engine: Engine = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would run, and for how long.")
    ] = False,
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
    strict: Strict = False,
) -> None:
    """Run models on tasks, or on the boards of a suite. Existing records are skipped.

    With several models or tasks, NAME.key=value in --model-args or --task-args applies only to
    NAME. With --suite, each model runs on every board that it supports; your options override the
    suite's, except those that make its boards.

    To add evaluations under shift to a record, give only --weights RECORD.json and --shift.
    With a model and a task, --weights and --init also accept a record and use its weights.
    """
    from ..display.views import waiting

    plugins = sound_host(strict)
    with stops_on_signals("nothing was run" if dry_run else _continuation(resume, force)):
        with waiting("loading torch"):
            from ..runs.settings import Settings

        settings = Settings(
            Path(out), device, force, resume, checkpoint_seconds, eval_batch, engine
        )
        prepare = Preparation(
            tuned or [], settings, training_options(context), tune=tune, trials=trials
        )
        models, output = parse_names(model or ""), Output(style, columns, sort)
        if not models and spec.get("weights", "").endswith(".json"):
            show_shifted(context, spec, settings, output)
        elif suite is not None:
            _run_suite(suite, task, models, with_files_of_weights(spec), prepare, dry_run, output)
        else:
            spec = with_files_of_weights(spec)
            _run_tasks(models, parse_names(task or ""), spec, prepare, dry_run, output)
    if strict:
        plugins.require_sound()


def _run_tasks(
    models: list[str],
    tasks: list[str],
    spec: dict[str, Any],
    prepare: Preparation,
    dry_run: bool,
    output: Output,
) -> None:
    """Run models on tasks and print the boards; exits with 1 or 2 if any run failed."""
    from ..display.views import waiting

    with waiting("reading models and tasks"):
        plans = [prepare.with_tuning(plan) for plan in _resolve(models, tasks, spec)]
    prepare.require_used(plans)
    if dry_run:
        end_with(_print_page(plans, prepare, output))
        return
    require_columns_of_boards(output)
    named = [(f"{plan.spec.model} on {plan.spec.task}", plan) for plan in plans]
    records, errors = run_all(named, prepare)
    problems = print_boards_of(records, prepare.settings.out, output)
    say_what_next(records, prepare.settings.out, failed=bool(errors))
    end_with(problems, max(map(exit_code, errors.values()), default=0))


def _run_suite(
    name: str,
    task: str | None,
    models: list[str],
    spec: dict[str, Any],
    prepare: Preparation,
    dry_run: bool,
    output: Output,
) -> None:
    """Run models on the boards of a suite and print the scores; exits with 1 if any run failed."""
    if task is not None:
        raise UsageError("--suite names the tasks: leave out --task")
    if not models:
        raise UsageError("--model needs at least one name")
    model_args = spec.pop("model_args", {})
    changes = {
        model: {**spec, "model_args": scoped(model_args, model, models, "--model-args")}
        for model in models
    }
    asked = SuiteRun(name, models, changes, prepare)
    if dry_run:
        if output.is_default:
            problems = asked.announce(measure=True)
        else:
            problems = _print_page(asked.plans, prepare, output)
        end_with(problems, 1 if asked.has_failures({}) else 0)
        return
    if output.style == "table":
        asked.announce()
    asked.require_columns(output)
    records, errors = run_all(asked.named, prepare)
    problems = asked.print_scores(records, errors, output)
    say_what_next(records, prepare.settings.out, failed=bool(errors), suite=name)
    end_with(problems, 1 if asked.has_failures(errors) else 0)


def _continuation(resume: bool, force: bool) -> str:
    """How to go on after an interruption."""
    without = "" if resume else " without --no-resume"
    again = ", and with --force repeats what is done" if force else ""
    return f"the same command{without} continues{again}"


def _resolve(models: list[str], tasks: list[str], spec: dict[str, Any]) -> list[Plan]:
    """All plans, so that a bad request is refused before any time is spent."""
    from ..api.config import parse_config
    from ..api.errors import UnsupportedError
    from ..api.spec import RunSpec
    from ..runs.plan import resolve
    from ..runs.shifts import asked_shifts

    if not models or not tasks:
        no_record = f"{spec['weights']} is not a record (*.json): " if "weights" in spec else ""
        raise UsageError(f"{no_record}--model and --task need at least one name; or give --suite")
    plans: dict[str, Plan] = {}
    impossible: list[str] = []
    for task in tasks:
        for model in models:
            request = {
                **spec,
                "model": model,
                "task": task,
                "model_args": scoped(spec.get("model_args", {}), model, models, "--model-args"),
                "task_args": scoped(spec.get("task_args", {}), task, tasks, "--task-args"),
            }
            try:
                with errors_of_options(spec, models, tasks):
                    plan = resolve(parse_config(RunSpec, request, OWNER))
                asked_shifts(plan)  # refuses those that the task does not define
            except UnsupportedError as error:
                impossible.append(str(error))
            else:
                plans.setdefault(plan.spec.id, plan)
    if impossible:
        raise UsageError("; ".join(impossible))
    return list(plans.values())


def _print_page(plans: list[Plan], prepare: Preparation, output: Output) -> list[str]:
    """Print what the plans would do; returns a line for each damaged record."""
    from ..display.dry_run import damaged, page

    show_table(page(plans, prepare.settings, prepare.tuning_cost(plans)), output)
    return damaged(plans, prepare.settings, tunes=prepare.tunes)
