"""Record: the one JSON document that a run leaves; RecordStore: the folder that keeps them.

`python -m iclbench.records` prints the JSON Schema of a record.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from .config import Config
from .errors import RecordError
from .files import write_atomically
from .specs import ResolvedSpec, digest_of, spec_id
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
        "eager", description="how steps were taken: eager, compiled, graph or compiled graph"
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


def read_record(path: Path) -> Record:
    """The record in `path`; raises RecordError when it is truncated, edited or of another kind."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise RecordError(f"{path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise RecordError(f"{path} is truncated or no record: {error}") from None
    if not isinstance(raw, dict) or "digest" not in raw or "schema_version" not in raw:
        raise RecordError(f"{path} is no record of a run")
    if raw["schema_version"] != SCHEMA_VERSION:
        raise RecordError(
            f"{path} has schema version {raw['schema_version']}, not {SCHEMA_VERSION}"
        )
    if digest_of({k: v for k, v in raw.items() if k != "digest"}) != raw["digest"]:
        raise RecordError(f"{path} was edited: its digest does not match its content")
    try:
        record = Record.model_validate(raw)
    except ValidationError as error:
        raise RecordError(f"{path} is no record: {error.errors()[0]['msg']}") from None
    # The spec as it stands in the file: fields that are added later don't touch old records.
    if record.id != spec_id(raw["spec"]):
        raise RecordError(f"{path} was edited: its id is not its spec's")
    return record


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def read_per_prompt(path: Path, record: Record) -> dict[str, np.ndarray]:
    """The values of every prompt, `metric/NAME` (seeds, prompts[, axis]) and `floor/NAME`.

    `path` is the record's own; raises RecordError when the file is missing or was changed.
    """
    from safetensors.numpy import load

    return load(read_referenced(path, record.per_prompt))


def read_referenced(path: Path, reference: FileReference) -> bytes:
    """The bytes of a file beside the record in `path`, checked against its SHA-256."""
    place = path.parent / reference.file
    try:
        data = place.read_bytes()
    except OSError as error:
        raise RecordError(f"{place} can't be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != reference.sha256:
        raise RecordError(f"{place} was changed: its SHA-256 is not the record's")
    return data


class RecordStore:
    """A folder of records: `TASK/MODEL-ID.json`, with the files that they name beside them."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, spec: ResolvedSpec, suffix: str = ".json") -> Path:
        """Where a run's record is, or another of its files."""
        return self.folder / spec.task / f"{spec.model}-{spec.id}{suffix}"

    def find(self, spec: ResolvedSpec) -> Record | None:
        """The run's record, or None; raises RecordError when it is damaged."""
        path = self.path(spec)
        return read_record(path) if path.exists() else None

    def write(self, record: Record) -> Path:
        """Write the record atomically, and then delete the files of the one it replaces."""
        path = self.path(record.spec)
        text = json.dumps(record.sealed().model_dump(mode="json"), indent=1, allow_nan=False)
        write_atomically(path, (text + "\n").encode())
        kept = {reference.file for reference in record.files()}
        for ending in ("safetensors", "jsonl"):
            for file in path.parent.glob(f"{path.stem}.*.{ending}"):
                if file.name not in kept:
                    file.unlink()
        return path

    def write_file(
        self, spec: ResolvedSpec, kind: str, data: bytes, ending: str = "safetensors"
    ) -> FileReference:
        """Write a file beside the record, named by its content: no record loses its own."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(spec, f".{sha256[:8]}.{kind}.{ending}")
        write_atomically(path, data)
        return FileReference(file=path.name, sha256=sha256)

    def paths(self) -> Iterator[Path]:
        """Every record's path, in a stable order; other files are passed over."""
        return (p for p in sorted(self.folder.glob("*/*.json")) if is_record_name(p))


def is_record_name(path: Path) -> bool:
    """Whether a file is named as records are, NAME-ID.json."""
    return re.fullmatch(r".+-[0-9a-f]{16}\.json", path.name) is not None


def record_schema() -> dict[str, Any]:
    """The JSON Schema of a record."""
    return Record.model_json_schema(mode="serialization")


if __name__ == "__main__":
    print(json.dumps(record_schema(), indent=2))
