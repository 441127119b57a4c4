"""tune: a search for a model's arguments from Python, with its progress shown."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..api.errors import unknown
from ..api.spec import RunSpec
from ..api.tuning import TuningDocument
from ..files import path_of, require_writable
from ..runs.plan import Plan, resolve
from ..runs.settings import Settings
from ..sweeps.tuning.search import tune_and_write
from ..sweeps.tuning.settings import SearchSettings
from ..sweeps.tuning.trials import TRIALS
from ..training.gradients.choice import EngineName
from .progress import progress_of_jobs
from .run import is_shown, request_of


def tune(
    model: str,
    task: str,
    *,
    trials: int = TRIALS,
    tuning_seeds: int = 1,
    search_seed: int = 0,
    space: Mapping[str, Any] | None = None,
    out: str | Path = "results",
    device: str = "auto",
    workers: int | None = None,
    executor: str = "local",
    executor_args: Mapping[str, Any] | None = None,
    engine: EngineName = "auto",
    progress: bool | None = None,
    **fields: Any,
) -> Path:
    """Search for a model's arguments with short trials, and return the path of the tuning.

    `fields` are the arguments of `iclbench.run` that say what to run; those that are given are not
    searched; `seeds`, `shift` and `metrics` are ignored, since trials have their own seeds and
    compute only the ranked metric. `iclbench.run` with the same fields and `tuned=` the path
    uses the tuning. Each trial is a run with a record in `out`/tuning, so the same call continues
    an interrupted search.

    `space` replaces fields of the search space, as `--space` does; `tuning_seeds` is the number of
    seeds of a trial, `search_seed` selects another sequence of trials. `executor` with
    `executor_args` runs them, `workers` at once.

    Raises UsageError for a request that can't be run, or that trains nothing, and for a folder that
    can't be written, and RunError if no trial gives a score.
    """
    own = inspect.signature(tune).parameters.values()
    named = [parameter.name for parameter in own if parameter.kind is not parameter.VAR_KEYWORD]
    known = dict.fromkeys([*RunSpec.model_fields, *named])
    for field in fields:
        if field not in RunSpec.model_fields:
            raise unknown("argument", field, known)
    plan = resolve(request_of({"model": model, "task": task, **fields}, "tune"))
    search = SearchSettings(
        trials=trials,
        tuning_seeds=tuning_seeds,
        search_seed=search_seed,
        space=space or {},
        workers=workers,
        executor=executor,
        executor_args=executor_args or {},
    )
    settings = Settings(out=path_of(out), device=device, engine=engine)
    require_writable(settings.out)
    if is_shown(progress):
        return tune_with_progress(plan, settings, search)[1]
    return tune_and_write(plan, settings, search, lambda line: None)[1]


def tune_with_progress(
    plan: Plan, settings: Settings, search: SearchSettings
) -> tuple[TuningDocument, Path]:
    """Search as `tune_and_write` does, with a line per program of trials and a display."""
    name = f"tuning {plan.spec.model} on {plan.spec.task}"
    with progress_of_jobs(name) as display:

        def say(line: str) -> None:
            display.line(f"{name}: {line}")

        return tune_and_write(plan, settings, search, say, display)
