"""Loading a task by name."""

from __future__ import annotations

from typing import Any

from ..api.config import parse_config
from ..api.task import Task
from ..plugins import host


def load_task(name: str, **args: Any) -> Task[Any]:
    """The task of that name, configured by `args`.

    Raises UsageError for an unknown name or invalid arguments.
    """
    task: type[Task[Any]] = host().load("task", name, Task)
    return task(parse_config(task.Config, args, f"task {name}"))
