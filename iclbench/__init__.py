"""iclbench: a benchmark harness for in-context learning.

Everything public is here; plugins import from here and from nothing below. Importing it imports
neither torch nor any plugin: names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .api.entry import Entry
from .hookspecs import hookimpl

if TYPE_CHECKING:
    from .api.architecture import Architecture, Construction, Solver
    from .api.asked import Asked
    from .api.capabilities import (
        CAPABILITIES,
        Decoder,
        Decodes,
        ExtendsPositions,
        ShowsIterates,
        ShowsStates,
        StatesSize,
        TrainingContext,
        TrainsFaster,
        offers,
    )
    from .api.classification import ClassificationConfig, ClassificationTask
    from .api.config import Config, added_later
    from .api.digits import ErrorKind, Statistic
    from .api.draws import Draws, EvaluationRandom, Random, TrainingRandom
    from .api.errors import (
        CheckpointError,
        IclbenchError,
        Interrupted,
        PluginError,
        RecordError,
        RunError,
        UnsupportedError,
        UsageError,
        unknown,
    )
    from .api.evaluation import EvaluationContext, predict
    from .api.exact import evaluate_exactly, exact_least_squares, exact_matmul, exact_solve
    from .api.executor import Executor, JobListener, QueuedJob, QueueExecutor
    from .api.floor import FloorKind
    from .api.graded_task import GradedTask
    from .api.grader import Completion, Grader
    from .api.input_shifts import input_shifts, value_scale, value_shifts
    from .api.metric import Metric
    from .api.pool import PooledConfig, PooledTask
    from .api.prefixes import PrefixConfig, PrefixTask
    from .api.prompts import (
        UNASKED,
        Batch,
        Categorical,
        LinearSystem,
        Regression,
        Ridge,
        Sequence,
        Signature,
        Text,
        map_tensors,
        to_device,
        with_lead,
    )
    from .api.random import philox, torch_generator
    from .api.recipe import Recipe, Stage, smoke_recipe
    from .api.record import GraderReport, GradingCost, Record
    from .api.rightness import likeliest, rightness
    from .api.scoring import Axis, Distance, Primary
    from .api.shift import Shift
    from .api.spec import RunSpec, digest_of
    from .api.statistics import finite
    from .api.suite import Suite
    from .api.task import Task, TaskConfig, training_batch
    from .api.tracker import Tracker
    from .console import report
    from .devices import find_device
    from .display.campaign import campaign
    from .display.run import run
    from .display.tune import tune
    from .exchange.pull import Pulled, pull
    from .exchange.task_data import export_task
    from .files import file_digest, require_writable, write_atomically
    from .kit.cases import check_plugin
    from .kit.parts import (
        check_command,
        check_config,
        check_grader,
        check_metric,
        check_recipe,
    )
    from .kit.suites import check_suite
    from .kit.tasks import check_task
    from .leaderboards.board import Board, Boards, leaderboard
    from .leaderboards.pairs import compare
    from .leaderboards.submit import Submitted, submit
    from .nn.architecture import SequenceArchitecture
    from .nn.backbone import BackboneArchitecture, BackboneConfig, BackboneModel
    from .nn.block import SequenceConfig, initialize
    from .nn.generation import Sampling, generate
    from .nn.local_language_model import LocalLanguageModel
    from .nn.logits import FactoredLogits, token_loss
    from .nn.mixers import NamedMixer, find_mixer
    from .nn.model import SequenceModel
    from .nn.predictions import SeveralPredictions
    from .nn.readout import read_positions
    from .nn.tokens import TokenTask
    from .nn.training_form import training_form
    from .plugins import host
    from .precision import full_precision
    from .runs.checks import ConformanceError, check_architecture
    from .runs.comparison import Check
    from .runs.load import load_task
    from .runs.recorded_model import load_model
    from .runs.retraining import Retraining, retrain
    from .runs.shift_records import evaluate_shifts
    from .runs.store import RecordStore, read_record
    from .runs.tracking import tracking
    from .runs.verify import verify
    from .sweeps.cells import Failure
    from .sweeps.conformance import check_executor
    from .sweeps.status import SweepStatus, sweep_status
    from .sweeps.sweep import SweepResult, submit_sweep, sweep
    from .training.interruption import interruptible

#: The names of each module.
_HOME = {
    "api.architecture": "Architecture Construction Solver", "api.asked": "Asked",
    "api.capabilities": "CAPABILITIES Decoder Decodes ExtendsPositions ShowsIterates ShowsStates "
    "StatesSize TrainingContext TrainsFaster offers",
    "api.classification": "ClassificationConfig ClassificationTask",
    "api.config": "Config added_later", "api.draws": "Draws EvaluationRandom Random TrainingRandom",
    "api.errors": "CheckpointError IclbenchError Interrupted PluginError RecordError RunError "
    "UnsupportedError UsageError unknown",
    "api.evaluation": "EvaluationContext predict",
    "api.exact": "evaluate_exactly exact_least_squares exact_matmul exact_solve",
    "api.executor": "Executor JobListener QueueExecutor QueuedJob", "api.graded_task": "GradedTask",
    "api.grader": "Completion Grader", "api.input_shifts": "input_shifts value_scale value_shifts",
    "api.metric": "Metric", "api.pool": "PooledConfig PooledTask",
    "api.prefixes": "PrefixConfig PrefixTask",
    "api.prompts": "UNASKED Batch Categorical LinearSystem Regression Ridge Sequence Signature "
    "Text map_tensors to_device with_lead",
    "api.random": "philox torch_generator", "api.recipe": "Recipe Stage smoke_recipe",
    "api.rightness": "likeliest rightness", "training.interruption": "interruptible",
    "api.record": "GraderReport GradingCost Record", "api.digits": "ErrorKind Statistic",
    "api.floor": "FloorKind", "api.scoring": "Axis Distance Primary",
    "api.shift": "Shift", "api.spec": "RunSpec digest_of", "api.statistics": "finite",
    "api.suite": "Suite", "api.task": "Task TaskConfig training_batch", "api.tracker": "Tracker",
    "console": "report", "devices": "find_device", "display.run": "run",
    "display.tune": "tune", "display.campaign": "campaign", "runs.retraining": "Retraining retrain",
    "exchange.pull": "Pulled pull",
    "leaderboards.submit": "Submitted submit",
    "exchange.task_data": "export_task", "files": "file_digest require_writable write_atomically",
    "kit.parts": "check_command check_config check_grader check_metric check_recipe",
    "kit.suites": "check_suite",
    "leaderboards.board": "Board Boards leaderboard", "leaderboards.pairs": "compare",
    "kit.tasks": "check_task", "nn.architecture": "SequenceArchitecture",
    "nn.backbone": "BackboneArchitecture BackboneConfig BackboneModel",
    "nn.block": "SequenceConfig initialize", "nn.generation": "Sampling generate",
    "kit.cases": "check_plugin", "nn.local_language_model": "LocalLanguageModel",
    "nn.logits": "FactoredLogits token_loss", "nn.mixers": "NamedMixer find_mixer",
    "nn.model": "SequenceModel", "nn.predictions": "SeveralPredictions",
    "nn.readout": "read_positions",
    "nn.tokens": "TokenTask", "nn.training_form": "training_form", "plugins": "host",
    "precision": "full_precision", "runs.load": "load_task",
    "runs.store": "RecordStore read_record",
    "runs.recorded_model": "load_model", "runs.comparison": "Check",
    "runs.checks": "ConformanceError check_architecture", "runs.shift_records": "evaluate_shifts",
    "runs.tracking": "tracking", "runs.verify": "verify", "sweeps.conformance": "check_executor",
    "sweeps.cells": "Failure", "sweeps.status": "SweepStatus sweep_status",
    "sweeps.sweep": "SweepResult submit_sweep sweep",
}  # fmt: skip
_MODULE = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [
    "CAPABILITIES", "UNASKED", "Architecture", "Asked", "Axis", "BackboneArchitecture",
    "BackboneConfig", "BackboneModel", "Batch", "Board", "Boards", "Categorical", "Check",
    "CheckpointError", "ClassificationConfig", "ClassificationTask", "Completion", "Config",
    "ConformanceError", "Construction", "Decoder", "Decodes", "Distance", "Draws", "Entry",
    "ErrorKind", "EvaluationContext", "EvaluationRandom", "Executor", "ExtendsPositions",
    "FactoredLogits", "Failure", "FloorKind", "GradedTask", "Grader", "GraderReport",
    "GradingCost", "IclbenchError", "Interrupted", "JobListener", "LinearSystem",
    "LocalLanguageModel", "Metric", "NamedMixer", "PluginError", "PooledConfig", "PooledTask",
    "PrefixConfig", "PrefixTask", "Primary", "Pulled", "QueueExecutor", "QueuedJob", "Random",
    "Recipe", "Record", "RecordError", "RecordStore", "Regression", "Retraining", "Ridge",
    "RunError", "RunSpec", "Sampling", "Sequence", "SequenceArchitecture", "SequenceConfig",
    "SequenceModel", "SeveralPredictions", "Shift", "ShowsIterates", "ShowsStates", "Signature",
    "Solver", "Stage", "StatesSize", "Statistic", "Submitted", "Suite", "SweepResult",
    "SweepStatus", "Task", "TaskConfig", "Text", "TokenTask", "Tracker", "TrainingContext",
    "TrainingRandom", "TrainsFaster", "UnsupportedError", "UsageError", "added_later", "campaign",
    "check_architecture", "check_command", "check_config", "check_executor", "check_grader",
    "check_metric", "check_plugin", "check_recipe", "check_suite", "check_task", "compare",
    "digest_of", "evaluate_exactly", "evaluate_shifts", "exact_least_squares", "exact_matmul",
    "exact_solve", "export_task", "file_digest", "find_device", "find_mixer", "finite",
    "full_precision", "generate", "hookimpl", "host", "initialize", "input_shifts",
    "interruptible", "leaderboard", "likeliest", "load_model", "load_task", "map_tensors",
    "offers", "philox", "predict", "pull", "read_positions", "read_record", "report",
    "require_writable", "retrain", "rightness", "run", "smoke_recipe", "submit", "submit_sweep",
    "sweep", "sweep_status", "to_device", "token_loss", "torch_generator", "tracking",
    "training_batch", "training_form", "tune", "unknown", "value_scale", "value_shifts", "verify",
    "with_lead", "write_atomically",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'iclbench' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
