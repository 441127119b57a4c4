"""Record: the one JSON document that a run leaves.

`python -m iclbench.api.record` prints its JSON Schema.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from .config import Config
from .spec import ResolvedSpec, digest_of
from .statistics import Curve, Statistics

SCHEMA_VERSION = 3


class FileReference(Config):
    """A file beside the record, and its SHA-256."""

    file: str
    sha256: str


class Ranking(Config):
    """What the task ranks by."""

    metric: str
    better: Literal["lower", "higher"]
    statistic: Literal["mean", "median"]
    scale: Literal["log", "linear"] = Field(description="log: compared by digits")


class SeedResult(Config):
    """One seed's metrics; the seed is None where nothing was trained."""

    seed: int | None
    diverged_at: int | None = Field(None, description="step at which the loss was not finite")
    metrics: dict[str, Statistics]


class TrainingReport(Config):
    """How the model was trained."""

    steps: int
    batch: int
    replicas: int = Field(description="models trained as one program")
    seconds: float = Field(description="this run's share of the program's time")
    steps_per_second: float = Field(description="model-steps, over all replicas of the program")
    curve_steps: list[int]
    curve: list[list[float | None]] = Field(description="mean loss since the last point, by seed")
    note: str | None = None
    speedup: float | None = Field(
        None, description="of a gradient in this program over one model's alone, timed at the start"
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
        description="the task's arguments without those that matter to training alone"
    )
    provenance: dict[str, Any] = Field(
        {}, description="where data that are not drawn come from, with their digests"
    )
    seconds: float


class Environment(Config):
    """Where the run was made."""

    device: str
    platform: str
    threads: int
    versions: dict[str, str]


class PluginReference(Config):
    """A plugin that took part."""

    name: str
    distribution: str
    version: str
    source: str = Field(description="SHA-256 of the plugin's Python files")


class GradingCost(Config):
    """What asking a paid grader cost, at list price; None where prices are not known."""

    requests: int = Field(description="answers that were paid for, those of earlier runs too")
    prompt_tokens: int
    answer_tokens: int
    usd: float | None = Field(description="of all these answers")
    paid_usd: float | None = Field(description="of this, what this run paid; the rest was kept")
    estimated_usd: float | None = Field(description="what this run was to pay at most, before")


class GraderReport(Config):
    """What graded the endings that the model wrote."""

    name: str
    model: str | None = Field(None, description="the model that graded, as it names itself")
    prompt: str | None = Field(None, description="SHA-256 of the prompt and the answer's form")
    completions: int = 0
    failures: int = Field(0, description="completions without a grade, left out of the statistics")
    reasons: dict[str, int] = Field({}, description="why grading failed, and how often")
    cost: GradingCost | None = None
    answers: FileReference | None = Field(
        None, description="each completion with its scores and the raw answer, JSON lines"
    )


class Record(Config):
    """All that a run leaves, but for the files that it names."""

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
    floor_name: str = Field("floor", description="what tables call the row of the floor")
    per_prompt: FileReference = Field(description="every metric of every prompt, safetensors")
    weights: FileReference | None = Field(
        None, description="trained or loaded parameters, safetensors"
    )
    training: TrainingReport | None = None
    analyses: dict[str, Any] = Field(
        {}, description="what the metrics that were asked for say of each model as a whole"
    )
    grader: GraderReport | None = Field(None, description="where --grader was given")
    evaluation: EvaluationReport
    environment: Environment
    plugins: list[PluginReference]
    created: str
    digest: str = Field("", description="SHA-256 of the record without this field")

    def files(self) -> list[FileReference]:
        """The files beside the record."""
        answers = self.grader.answers if self.grader else None
        return [file for file in (self.per_prompt, self.weights, answers) if file]

    def sealed(self) -> Record:
        """The same record with its digest."""
        content = self.model_dump(mode="json", exclude={"digest"})
        return self.model_copy(update={"digest": digest_of(content)})


def record_schema() -> dict[str, Any]:
    """The JSON Schema of a record."""
    return Record.model_json_schema(mode="serialization")


if __name__ == "__main__":
    print(json.dumps(record_schema(), indent=2))
