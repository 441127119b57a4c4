"""`iclbench tune`: search for a model's and a recipe's arguments on a task or a suite."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import PLUGIN_FAILURES, UsageError, reason_of
from ..api.options import parse_arguments
from ..console import report, show_traceback
from ..display.table import Output
from ..runs.record_weights import with_files_of_weights
from ..sweeps.tuning.trials import TRIALS
from .common import (
    Columns,
    Device,
    DryRun,
    Engine,
    ExecutorArgs,
    ExecutorName,
    Out,
    Sort,
    Strict,
    Style,
    SuiteName,
    Trials,
    Workers,
    exit_code,
    options_given,
    show_tables,
    sound_host,
)
from .interruption import stops_on_signals
from .scopes import OWNER, errors_of_options
from .spec_options import with_spec_options

if TYPE_CHECKING:
    from ..display.progress import ProgressDisplay
    from ..display.table import Table
    from ..runs.plan import Plan
    from ..runs.settings import Settings
    from ..sweeps.tuning.settings import SearchSettings


#: Options of a run that its trials do not have.
_OF_RUNS = {"seeds", "shift", "metrics"}
#: Options of a grader, which trials have only where grades rank.
_OF_GRADERS = {"grader", "grader_args", "grader_budget"}

TuningSeeds = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Seeds per trial.")]
Space = Annotated[
    list[str] | None,
    typer.Option(metavar="K=V,…", help="Changes to the search space, or @file.toml."),
]


@with_spec_options
def tune(
    context: typer.Context,
    *,
    model: Annotated[str, typer.Option(metavar="NAME", help="Model to tune.")],
    task: Annotated[str | None, typer.Option(metavar="NAME", help="Task to tune it on.")] = None,
    suite: SuiteName = None,
    spec: dict[str, Any],
    trials: Trials = TRIALS,
    tuning_seeds: TuningSeeds = 1,
    search_seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the search.")] = 0,
    space: Space = None,
    out: Out = "results",
    device: Device = "auto",
    executor: ExecutorName = "local",
    executor_args: ExecutorArgs = None,
    workers: Workers = None,
    engine: Engine = "auto",
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
    dry_run: DryRun = False,
    strict: Strict = False,
) -> None:
    """Search for good settings with short trials, a tenth of the budget each.

    Writes one tuning per board to OUT/tunings. Existing trials are reused. Arguments that you set
    are not searched.
    """
    sound_host(strict)
    with stops_on_signals("the same command continues"):
        from ..display.views import waiting

        with waiting("loading torch"):
            from ..runs.settings import Settings
            from ..sweeps.tuning.search import executor_of
            from ..sweeps.tuning.settings import SearchSettings

        settings = Settings(out=Path(out), device=device, engine=engine)
        search = SearchSettings(
            trials=trials,
            tuning_seeds=tuning_seeds,
            search_seed=search_seed,
            space=parse_arguments(space or [], "--space"),
            workers=workers,
            executor=executor,
            executor_args=parse_arguments(executor_args or [], "--executor-args"),
        )
        plans = _plans(model, task, suite, with_files_of_weights(spec), search)
        _say_unused(context, plans.values())
        output = Output(style, columns, sort)
        executor_of(search, settings)  # refuses once what every board would refuse
        if dry_run:
            show_tables(_planned(plans, settings, search), output)
            return
        _require_columns(plans, settings, search, output)
        code = _tune_all(plans, settings, search, output)
    if code:
        raise typer.Exit(code)


def _say_unused(context: typer.Context, plans: Collection[Plan]) -> None:
    """Say which options of a run were given that trials do not have."""
    from ..runs.statistics import GRADE

    ranks_grades = any(plan.task.primary.metric.startswith(GRADE) for plan in plans)
    names = _OF_RUNS if ranks_grades else _OF_RUNS | _OF_GRADERS
    unused = [option for name, option in options_given(context).items() if name in names]
    if unused:
        report(
            f"ignored: {', '.join(unused)}; trials have their own seeds and compute only the "
            "ranked metric"
        )


def _planned(plans: Mapping[str, Plan], settings: Settings, search: SearchSettings) -> list[Table]:
    """The trials of each plan, and what they would cost."""
    from ..display.trials import planned_table
    from ..sweeps.tuning.planning import planned_search

    return [
        planned_table(name, planned_search(plan, settings, search)) for name, plan in plans.items()
    ]


def _require_columns(
    plans: Mapping[str, Plan], settings: Settings, search: SearchSettings, output: Output
) -> None:
    """Refuse columns that no table of trials will have, before anything runs."""
    if output.columns is None and output.sort is None:
        return
    from ..display.table import joined
    from ..display.trials import expected_table
    from ..sweeps.tuning.planning import planned_search

    planned = [planned_search(plan, settings, search) for plan in plans.values()]
    tables = [expected_table(one.trials) for one in planned]
    joined(tables).arranged(output)


def _tune_all(
    plans: Mapping[str, Plan], settings: Settings, search: SearchSettings, output: Output
) -> int:
    """Tune plans and print the trials of each, or all as one table; returns the exit code."""
    from ..display.progress import progress_of_jobs
    from ..files import removed_if_empty, require_writable

    code, tables = 0, []
    with removed_if_empty(settings.out):
        require_writable(settings.out)
        for name, plan in plans.items():
            with progress_of_jobs(f"tuning {name}") as display:
                failed, table = _tune(name, plan, settings, search, display)
            code = max(code, failed)
            if table is not None and output.is_default:
                typer.echo()
                show_tables([table], output)
            elif table is not None:
                tables.append(table)
    if tables:
        show_tables(tables, output)
    return code


def _tune(
    name: str, plan: Plan, settings: Settings, search: SearchSettings, display: ProgressDisplay
) -> tuple[int, Table | None]:
    """Tune one plan; returns the exit code and the trials."""
    from ..display.trials import finished_table
    from ..runs.tuned import write_tuning
    from ..sweeps.tuning.planning import planned_search
    from ..sweeps.tuning.search import run_search

    try:
        planned = planned_search(plan, settings, search)
        document = run_search(planned, settings, search, display.line, display)
        path = write_tuning(settings.out, document)
    except PLUGIN_FAILURES as error:
        show_traceback(error)
        report(f"error: {name}: {reason_of(error)}")
        return exit_code(error), None
    nothing_new = [] if planned.missing else ["Nothing was run: all trials had records."]
    return 0, finished_table(name, document, ["", *nothing_new, f"tuning: {path}"])


def _plans(
    model: str,
    task: str | None,
    suite: str | None,
    spec: dict[str, Any],
    search: SearchSettings,
) -> dict[str, Plan]:
    """What to tune: one plan, or those of a suite that train, by model and task or board.

    Says which boards of the suite the model does not support. Raises UsageError if it is trained on
    none of them, and for an argument that is given, by a suite too, and searched.
    """
    from ..api.config import parse_config
    from ..api.spec import RunSpec
    from ..runs.plan import resolve
    from ..runs.suites import find_suite, resolve_suite
    from ..sweeps.tuning.planning import require_not_given

    if "," in model:
        raise UsageError("tune takes one model: repeat it for each")
    if (task is None) == (suite is None):
        raise UsageError("give either --task or --suite")
    if suite is None:
        asked = {**spec, "model": model, "task": task}
        with errors_of_options(spec, [model], [str(task)]):
            plan = resolve(parse_config(RunSpec, asked, OWNER))
        require_not_given(plan, search)
        return {f"{model} on {task}": plan}
    plans, supported = {}, False
    for cell in resolve_suite(find_suite(suite), [model], {model: spec}):
        if cell.extra:
            continue
        if cell.error is not None:
            raise cell.error
        if cell.plan is None:
            report(f"{cell.board.name}: {model} is unsupported: {cell.unsupported}")
            continue
        supported = True
        if cell.plan.recipe is not None:
            # Before the first board is tuned, for hours.
            require_not_given(cell.plan, search)
            plans[f"{model} on {cell.board.name}"] = cell.plan
    if not plans:
        why = "nothing is trained on its boards" if supported else "it supports none of the boards"
        raise UsageError(f"{model} on the suite {suite}: {why}, so there is nothing to tune")
    return plans
