"""What an entry is tried with: small configurations, tasks of every form, models, tiny runs."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..api.architecture import Architecture, Solver
from ..api.asked import Asked
from ..api.config import Config, parse_config
from ..api.errors import PLUGIN_FAILURES, IclbenchError
from ..api.recipe import SMOKE
from ..api.record import Record
from ..api.spec import RunSpec
from ..api.task import Task
from ..plugins import host
from ..runs.checks import expect
from ..runs.code import HARNESS
from ..runs.plan import resolve
from ..runs.recipe_arguments import split_by_use
from ..runs.run import run_plans
from ..runs.settings import Settings
from ..runs.store import RecordStore
from ..runs.verify import verify

#: Names of checks, and functions that say what they covered and raise what they find wrong.
Checks = Iterator[tuple[str, Callable[[], str]]]


class NotCheckedError(Exception):
    """A check that can't be made here; the message says why. It is no failure."""


#: A run of the kit: seconds, whatever the model.
TRIAL: dict[str, Any] = {"seeds": 2, "eval_prompts": 16, "dtype": "float32"}
STEPS = {"steps": 2, "batch": 4}


def small_args(config: type[Config]) -> dict[str, Any]:
    """The arguments that make a model small, as far as it has them and takes these values."""
    small, _ = split_by_use({**SMOKE.model_args, "layers": 2}, config, {})
    return small


def require_defaults(config: type[Config], advice: str = "") -> None:
    """Raise NotCheckedError for arguments without a default, with what else can be done."""
    required = [name for name, field in config.model_fields.items() if field.is_required()]
    if required:
        raise NotCheckedError(f"{', '.join(required)} has no default{advice}")


def small_config(architecture: type[Architecture]) -> Config:
    """A small configuration; raises NotCheckedError where an argument has no default."""
    require_defaults(architecture.Config, "; call check_architecture")
    args = small_args(architecture.Config)
    return parse_config(architecture.Config, args, f"model {architecture.name}")


def distribution_of(kind: str, name: str) -> str:
    """That of the entry, beside which entries of others are not tried where others exist."""
    return host().provider(kind, name)[0].distribution


def usable_task(name: str) -> Task[Any] | None:
    """The task with its default arguments; None if they do not suffice, or data are missing."""
    try:
        task_class: type[Task[Any]] = host().load("task", name, Task)
    except PLUGIN_FAILURES:  # another plugin's problem is none of the checked one
        return None
    return _usable_task(task_class)


# Of the class: one that is corrected in a notebook is another task.
@functools.lru_cache(maxsize=256)
def _usable_task(task_class: type[Task[Any]]) -> Task[Any] | None:
    try:
        require_defaults(task_class.Config)
        task = task_class(task_class.Config())
        _ = task.signature
    except (NotCheckedError, *PLUGIN_FAILURES):
        return None
    return task


def _names(kind: str, of: str) -> list[str]:
    """The names of a kind's entries; those of the harness and of the distribution `of` come first.

    What else is installed, and broken there, should not change a check of that distribution.
    """
    near: list[str] = []
    far: list[str] = []
    for plugin, entry in host().entries(kind):
        (near if plugin.distribution in {HARNESS, of} else far).append(entry.name)
    return near + far


def forms_of_tasks(of: str = "", *, near: bool = False) -> list[Task[Any]]:
    """A task of every form: those with equal prompts, targets and causality, the shortest.

    If `near`, only tasks of the harness and of the distribution `of`.
    """
    shortest: dict[tuple[Any, ...], Task[Any]] = {}
    for plugin, entry in host().entries("task"):
        if near and plugin.distribution not in {HARNESS, of}:
            continue
        task = usable_task(entry.name)
        if task is None:
            continue
        signature = task.signature
        form = (signature.prompt, signature.target, signature.causal, signature.varies)
        if form not in shortest or signature.length < shortest[form].signature.length:
            shortest[form] = task
    return list(shortest.values())


def all_tasks(of: str = "") -> list[Task[Any]]:
    """Every usable task, those of `forms_of_tasks` first, near ones before others."""
    first = forms_of_tasks(of, near=True)
    tasks = [usable_task(name) for name in _names("task", of)]
    return first + [task for task in tasks if task is not None and task not in first]


def tasks_for(architecture: Architecture, config: Config, of: str = "") -> list[Task[Any]]:
    """The tasks of `forms_of_tasks` that an architecture of the distribution `of` supports.

    Those of other distributions only where it supports no other.
    """
    for near in (True, False):
        tasks = [
            task
            for task in forms_of_tasks(of, near=near)
            if architecture.supports(task.signature, config) is None
        ]
        if tasks:
            return tasks
    return []


def models_for(task: Task[Any], of: str = "") -> Iterator[type[Architecture]]:
    """The installed models that support a task with their small configuration, trained ones first.

    A solver has no weights, so a run of one tests less. Language models are not asked. Models of
    the harness and of the distribution `of` come before others of their kind.
    """
    classes: list[type[Architecture]] = []
    for name in _names("model", of):
        try:
            model = host().load("model", name, Architecture)
        except IclbenchError:
            continue
        if not issubclass(model, Asked):
            classes.append(model)
    for architecture in sorted(classes, key=lambda one: issubclass(one, Solver)):
        try:
            supported = architecture().supports(task.signature, small_config(architecture)) is None
        except PLUGIN_FAILURES:  # another plugin's problem is none of the checked one
            continue
        if supported:
            yield architecture


def trainable(of: str = "") -> tuple[type[Architecture], Task[Any]]:
    """A model that is trained, and a task that it supports; raises NotCheckedError without one."""
    for task in all_tasks(of):
        for model in models_for(task, of):
            if not issubclass(model, Solver):
                return model, task
    raise NotCheckedError("no installed model can be trained")


def tiny_run(model: type[Architecture], task: str, **fields: Any) -> Record:
    """Run a model for two steps, in a temporary folder, and verify the record.

    Raises ConformanceError for a record that does not verify.
    """
    args = {"model_args": small_args(model.Config), "recipe": "smoke", "recipe_args": STEPS}
    spec = {"model": model.name, "task": task, **args, **TRIAL, **fields}
    plan = resolve(parse_config(RunSpec, spec, "run"))
    with tempfile.TemporaryDirectory() as folder:
        (record,) = run_plans([plan], Settings(Path(folder), device="cpu"))
        (path,) = RecordStore(folder).paths()
        differing = [check for check in verify(path, "cpu", trusted=True) if not check.holds]
    shown = "; ".join(check.difference for check in differing[:3])
    expect(not differing, f"its record does not verify: {shown}")
    return record
