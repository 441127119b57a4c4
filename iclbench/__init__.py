"""iclbench: a benchmark harness for in-context learning.

Importing it imports neither torch nor any plugin; names are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .hookspecs import hookimpl
from .plugins import Entry

if TYPE_CHECKING:
    from .architectures import (
        Architecture,
        Construction,
        SequenceArchitecture,
        SequenceConfig,
        SequenceModel,
        Solver,
        initialize,
    )
    from .classification import ClassificationConfig, ClassificationTask
    from .config import Config
    from .errors import IclbenchError, PluginError, RecordError, RunError, UsageError
    from .executors import Executor
    from .graders import Completion, Grader
    from .leaderboards import leaderboard
    from .metrics import Metric
    from .prompts import (
        Batch,
        Categorical,
        LinearSystem,
        Regression,
        Ridge,
        Sequence,
        Signature,
        Text,
    )
    from .randomness import philox
    from .recipes import Recipe
    from .records import Record, RecordStore
    from .runner import run
    from .specs import RunSpec
    from .streams import DrawnTask, Streams
    from .sweeps import sweep
    from .tasks import Axis, EvaluationContext, Primary, Task, TaskConfig, load_task, predict
    from .verification import verify

_HOME = {
    "architectures": (
        "Architecture",
        "Construction",
        "SequenceArchitecture",
        "SequenceConfig",
        "SequenceModel",
        "Solver",
        "initialize",
    ),
    "classification": ("ClassificationConfig", "ClassificationTask"),
    "config": ("Config",),
    "errors": ("IclbenchError", "PluginError", "RecordError", "RunError", "UsageError"),
    "executors": ("Executor",),
    "graders": ("Completion", "Grader"),
    "leaderboards": ("leaderboard",),
    "metrics": ("Metric",),
    "prompts": (
        "Batch",
        "Categorical",
        "LinearSystem",
        "Regression",
        "Ridge",
        "Sequence",
        "Signature",
        "Text",
    ),
    "randomness": ("philox",),
    "recipes": ("Recipe",),
    "records": ("Record", "RecordStore"),
    "runner": ("run",),
    "specs": ("RunSpec",),
    "streams": ("DrawnTask", "Streams"),
    "sweeps": ("sweep",),
    "verification": ("verify",),
    "tasks": ("Axis", "EvaluationContext", "Primary", "Task", "TaskConfig", "load_task", "predict"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Architecture",
    "Axis",
    "Batch",
    "Categorical",
    "ClassificationConfig",
    "ClassificationTask",
    "Completion",
    "Config",
    "Construction",
    "DrawnTask",
    "Entry",
    "EvaluationContext",
    "Executor",
    "Grader",
    "IclbenchError",
    "LinearSystem",
    "Metric",
    "PluginError",
    "Primary",
    "Recipe",
    "Record",
    "RecordError",
    "RecordStore",
    "Regression",
    "Ridge",
    "RunError",
    "RunSpec",
    "Sequence",
    "SequenceArchitecture",
    "SequenceConfig",
    "SequenceModel",
    "Signature",
    "Solver",
    "Streams",
    "Task",
    "TaskConfig",
    "Text",
    "UsageError",
    "hookimpl",
    "initialize",
    "leaderboard",
    "load_task",
    "philox",
    "predict",
    "run",
    "sweep",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'iclbench' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
