"""Record: the JSON document that a run leaves.

`python -m iclbench.api.record` prints its JSON Schema.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from .config import Config
from .costs import BudgetReport, Operations, ValidationCurve
from .spec import ResolvedSpec, digest_of
from .statistics import Curve, Statistics

SCHEMA_VERSION = 3


class FileReference(Config):
    """A file beside the record, and its SHA-256."""

    file: str
    sha256: str


class Ranking(Config):
    """The number that the task ranks by."""

    metric: str
    better: Literal["lower", "higher"]
    statistic: Literal["mean", "median"]
    scale: Literal["log", "linear"] = Field(description="log: compared by log10")


class SeedResult(Config):
    """One seed's metrics; the seed is None if nothing was trained."""

    seed: int | None
    diverged_at: int | None = Field(None, description="the step at which the loss was not finite")
    metrics: dict[str, Statistics]


class TrainingReport(Config):
    """How the model was trained."""

    steps: int
    batch: int
    replicas: int = Field(description="models trained as one program")
    seconds: float = Field(description="this run's share of the program's time")
    steps_per_second: float = Field(description="model-steps, over all replicas of the program")
    curve_steps: list[int]
    curve: list[list[float | None]] = Field(
        description="every seed's mean loss since the step before"
    )
    note: str | None = None
    speedup: float | None = Field(
        None, description="of this program's gradients over one model's alone, timed at the start"
    )
    engine: str = Field(
        "eager", description="the program that computed gradients; `eager` in older records"
    )


class EvaluationReport(Config):
    """The prompts that the model was evaluated on."""

    prompts: int
    seed: int
    digest: str = Field(description="SHA-256 of the raw float64 draws")
    task_args: dict[str, Any] = Field(
        description="the task's arguments, without those that affect only training"
    )
    provenance: dict[str, Any] = Field(
        {}, description="the sources of data that are not drawn, with their digests"
    )
    seconds: float


class Environment(Config):
    """The machine and the libraries of the run."""

    device: str
    platform: str
    threads: int
    versions: dict[str, str]


class PluginReference(Config):
    """A plugin that the run used."""

    name: str
    distribution: str
    version: str
    source: str = Field(description="SHA-256 of the plugin's Python files")


class GradingCost(Config):
    """The cost of a paid grader at list price; None if prices are unknown."""

    requests: int = Field(description="answers paid for, including those of earlier runs")
    prompt_tokens: int
    answer_tokens: int
    usd: float | None = Field(description="the cost of all these answers")
    paid_usd: float | None = Field(description="the part that this run paid")
    estimated_usd: float | None = Field(description="this run's highest possible cost")


class GraderReport(Config):
    """The grader of the endings that the model wrote."""

    name: str
    model: str | None = Field(None, description="the model that graded, as it names itself")
    prompt: str | None = Field(None, description="SHA-256 of the prompt and of the answer's form")
    completions: int = 0
    failures: int = Field(0, description="completions without a grade, excluded from statistics")
    reasons: dict[str, int] = Field({}, description="reason of a failure → how often it occurred")
    cost: GradingCost | None = None
    answers: FileReference | None = Field(
        None, description="every completion with its scores and the raw answer, JSON lines"
    )


class Record(Config):
    """Everything that a run leaves, except the files that it names."""

    schema_version: int = SCHEMA_VERSION
    id: str
    spec: ResolvedSpec
    command: str
    ranking: Ranking
    parameters: int = Field(description="number of parameters of one model")
    metrics: dict[str, Statistics]
    curves: dict[str, Curve] = {}
    seeds: list[SeedResult]
    floor: dict[str, Statistics]
    floor_curves: dict[str, Curve] = {}
    floor_name: str = Field("floor", description="the label of the floor's row in tables")
    per_prompt: FileReference = Field(description="every metric of every prompt, safetensors")
    weights: FileReference | None = Field(
        None, description="trained or loaded parameters, safetensors"
    )
    training: TrainingReport | None = None
    operations: Operations | None = None
    validation_curve: ValidationCurve | None = None
    track: str | None = Field(None, description="the class of training budgets, such as 10m")
    budget: BudgetReport | None = None
    analyses: dict[str, Any] = Field(
        {}, description="metric → its analysis of the model as a whole, for each seed"
    )
    grader: GraderReport | None = Field(None, description="if a grader was asked for")
    evaluation: EvaluationReport
    environment: Environment
    plugins: list[PluginReference]
    created: str
    digest: str = Field("", description="SHA-256 of the record without this field")

    def files(self) -> list[FileReference]:
        """Every file beside the record.

        Use it wherever a record's files are copied, deleted, checked or counted.
        """
        return list(self.files_by_kind().values())

    def files_by_kind(self) -> dict[str, FileReference]:
        """The same files by kind, which is part of their name: prompts, weights, answers."""
        answers = self.grader.answers if self.grader else None
        files = {"prompts": self.per_prompt, "weights": self.weights, "answers": answers}
        return {kind: reference for kind, reference in files.items() if reference is not None}

    def sealed(self) -> Record:
        """The same record with its digest."""
        content = self.model_dump(mode="json", exclude={"digest"})
        return self.model_copy(update={"digest": digest_of(content)})


def record_schema() -> dict[str, Any]:
    """The JSON Schema of a record."""
    return Record.model_json_schema(mode="serialization")


if __name__ == "__main__":
    print(json.dumps(record_schema(), indent=2))
