"""run: one run from Python, with its progress shown."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from ..api.config import parse_config
from ..api.errors import UsageError
from ..api.record import Record
from ..api.spec import RunSpec
from ..files import path_of
from ..runs.plan import resolve
from ..runs.record_weights import with_files_of_weights
from ..runs.reuse import replacing_record
from ..runs.run import run_plans
from ..runs.settings import Settings
from ..runs.store import RecordStore
from ..runs.tuned import tuned_by_files
from ..training.gradients.choice import EngineName
from .progress import progress_of_runs
from .views import in_notebook, on_terminal


def run(
    model: str,
    task: str,
    *,
    model_args: Mapping[str, Any] | None = None,
    task_args: Mapping[str, Any] | None = None,
    weights: str | os.PathLike[str] | None = None,
    weights_args: Mapping[str, Any] | None = None,
    init: str | os.PathLike[str] | None = None,
    freeze: str | Sequence[str] = (),
    perturb: float = 0.0,
    recipe: str = "quick",
    recipe_args: Mapping[str, Any] | None = None,
    budget: str | None = None,
    seeds: int | Sequence[int] = 5,
    dtype: Literal["float32", "float64"] = "float32",
    eval_prompts: int = 2048,
    eval_seed: int = 0,
    shift: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    grader: str | None = None,
    grader_args: Mapping[str, Any] | None = None,
    grader_budget: float | None = None,
    tuned: str | Path | Sequence[str | Path] = (),
    out: str | Path = "results",
    device: str = "auto",
    force: bool = False,
    resume: bool = True,
    checkpoint_seconds: float = 30.0,
    eval_batch: int | None = None,
    engine: EngineName = "auto",
    progress: bool | None = None,
) -> Record:
    """Run a model on a task, write its record into the folder `out`, and return it.

    The arguments before `out` say what to run, and are those of `iclbench run`: `weights` is the
    source of the weights, `shift` names evaluation distributions (`"all"` for every one), `init`
    are weights to start training from, `freeze` patterns of parameters that are not trained,
    `perturb` the deviation of the noise added to `init`, `budget` the core time of each seed
    (`"10m"`, or device time, `"gpu-1h"`), `seeds` a number or a list, `tuned` a tuning of
    `iclbench.tune`, or folders of them.

    The others say how, and change no result: `force` runs again where a record exists, which is
    returned as it is otherwise; `resume` continues an interrupted training; `progress` shows the
    phase, the loss and the time left, by default on a terminal and in a notebook.

    Raises UsageError for a request that can't be run and RunError for a run that failed.
    """
    given = locals()
    plan = resolve(request_of({name: given[name] for name in RunSpec.model_fields}))
    if tuned:
        paths = [tuned] if isinstance(tuned, str | Path) else tuned
        plan = tuned_by_files(plan, [path_of(path) for path in paths])
    folder = path_of(out)
    if force:
        plan = replacing_record(plan, RecordStore(folder))
    settings = Settings(**{f.name: given[f.name] for f in fields(Settings)} | {"out": folder})
    display = progress_of_runs(1, 1, f"{plan.spec.model} on {plan.spec.task}")
    with display if is_shown(progress) else nullcontext():
        return run_plans([plan], settings)[0]


def is_shown(progress: bool | None) -> bool:
    """Whether progress is shown: by default, where someone may look."""
    return progress or (progress is None and (in_notebook() or on_terminal()))


def request_of(given: Mapping[str, Any], verb: str = "run") -> RunSpec:
    """What is to be run, without what is None.

    Raises UsageError that begins with the verb, also for a module in place of a model's name.
    """
    if not isinstance(given["model"], str):
        raise UsageError(
            f"model is of type {type(given['model']).__name__}, not the name of a model; "
            'docs/guide/weights.md, "Your own torch model", shows how to run a module'
        )
    requested = {name: value for name, value in given.items() if value is not None}
    for name in ("weights", "init"):
        if name in requested:
            requested[name] = os.fspath(requested[name])
    for name in ("shift", "metrics", "freeze"):
        if isinstance(requested.get(name), str):
            requested[name] = (requested[name],)
    return parse_config(RunSpec, with_files_of_weights(requested), verb)
