"""Record: the JSON document that a run leaves.

`python -m iclbench.api.record` prints its JSON Schema.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import ConfigDict, Field, NonNegativeInt, model_validator

from .config import Config, added_later
from .costs import BudgetReport, Operations, ValidationCurve
from .names import Label, is_plain_name
from .ranking import Ranking
from .results import Evaluation, FileReference
from .spec import ResolvedSpec, digest_of
from .statistics import Curve, Statistics
from .stored import Stored

SCHEMA_VERSION = 4

#: Bytes of a number of each dtype.
BYTES = {"float32": 4, "float64": 8}

#: The name of the evaluation that boards rank by.
MAIN = "main"


class SeedReport(Config):
    """One model of the run. Its metrics are at the same position in each evaluation's `seeds`."""

    seed: int | None = Field(description="None if nothing was trained")
    diverged_at: int | None = Field(None, description="the step (from 0) that was not finite")


class TrainingReport(Config):
    """How the model was trained."""

    steps: int
    batch: int
    replicas: int = Field(description="models trained as one program")
    seconds: float = Field(description="this run's share of the program's time")
    steps_per_second: float = Field(description="model-steps, over all replicas of the program")
    curve_steps: list[int]
    curve: list[list[float | None]] = Field(
        description="every seed's mean loss since the point before"
    )
    note: Label | None = None
    speedup: float | None = Field(
        None,
        description="speedup of its gradients over those of one model alone, timed at the start",
    )
    engine: Label = Field(description="the program that computed gradients")

    @model_validator(mode="after")
    def _check(self) -> TrainingReport:
        if len(self.curve) != len(self.curve_steps) or len({len(c) for c in self.curve}) > 1:
            raise ValueError("its curve is uneven")
        return self


class Tuning(Config):
    """The file of the search that chose the recipe's settings: its digest and its content."""

    sha256: str
    document: dict[str, Any]


class Environment(Config):
    """The machine and the libraries of the run."""

    device: Label
    processor: Label = Field(description="architecture and vector instructions of the CPU")
    cpu: Label | None = Field(None, description="the CPU's name; null: not known")
    platform: Label
    threads: int = Field(ge=1, le=100_000)
    versions: dict[Label, Label]

    @property
    def in_words(self) -> str:
        """The device, the CPU and the threads, on a line."""
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        return ", ".join(filter(None, [self.device, self.cpu, self.processor, threads]))


class PluginReference(Config):
    """A plugin that the run used, or the harness."""

    name: str
    distribution: str = Field(pattern=r"^[\w.+!-]{1,100}$")
    version: str = Field(pattern=r"^[\w.+!-]{1,100}$")
    source: Label = Field(description="SHA-256 of the Python files that can change a number")


class Proof(Config):
    """What somebody other than the author of the record has checked, when and where."""

    kind: Literal["evaluated", "retrained"] = Field(
        description="evaluated: the weights give these numbers; retrained: training gave them again"
    )
    created: Label
    environment: Environment
    same_bits: bool | None = Field(None, description="whether training gave the same weights")
    tolerance: Label | None = Field(None, description="how far results were allowed to differ")
    plugins: list[PluginReference] = Field([], description="the code that checked it")

    @model_validator(mode="after")
    def _says_what_was_checked(self) -> Proof:
        if self.kind == "evaluated" and (self.same_bits is not None or self.tolerance is not None):
            raise ValueError("a proof by evaluation says nothing of training again")
        return self


class GradingCost(Config):
    """The cost of a paid grader at list price; None if prices are unknown."""

    requests: int = Field(ge=0, description="answers paid for, including those of earlier runs")
    prompt_tokens: int = Field(ge=0)
    answer_tokens: int = Field(ge=0)
    usd: float | None = Field(ge=0, description="the cost of all these answers")
    paid_usd: float | None = Field(ge=0, description="the part that this run paid")
    estimated_usd: float | None = Field(ge=0, description="this run's highest possible cost")


class GraderReport(Config):
    """The grader of the endings that the model wrote."""

    name: str
    model: Label | None = Field(None, description="the model that graded, as it names itself")
    prompt: Label | None = Field(None, description="SHA-256 of the prompt and of the answer's form")
    completions: int = Field(0, ge=0)
    failures: int = Field(0, ge=0, description="completions without a grade, left out of means")
    reasons: dict[Label, NonNegativeInt] = Field({}, description="failures by reason")
    cost: GradingCost | None = None
    answers: FileReference | None = Field(
        None, description="every completion with its scores and the raw answer, JSON lines"
    )


class Record(Stored):
    """Everything that a run leaves, except the files that it names."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_version: int = SCHEMA_VERSION
    id: str
    spec: ResolvedSpec
    command: str = Field(pattern="^iclbench run ", description="command that repeats the run")
    ranking: Ranking
    parameters: int = Field(description="number of parameters of one model")
    chance: bool = Field(
        False, description="whether the model ignores the examples: its row is chance"
    )
    operations: Operations | None = None
    state_sizes: tuple[int, ...] | None = added_later(
        None,
        description="numbers that each layer keeps of a prompt after reading it; None: unknown",
    )
    seeds: list[SeedReport] = Field(description="the models, in the order of all their results")
    evaluations: dict[str, Evaluation] = Field(description="`main` is the one that boards rank by")
    not_applicable: dict[Label, Label] = added_later(
        {}, description="shift that the model can't be evaluated under → the reason"
    )
    analyses: dict[str, Any] = Field(
        {}, description="metric → its analysis of the model as a whole, for each seed"
    )
    weights_file: FileReference | None = Field(
        None, alias="weights", description="trained or loaded parameters of every seed, safetensors"
    )
    answers: FileReference | None = Field(
        None, description="what a language model answered, JSON lines"
    )
    grader: GraderReport | None = Field(None, description="report of the grader, if one was used")
    training: TrainingReport | None = None
    validation_curve: ValidationCurve | None = None
    track: Label | None = Field(None, description="the class of training budgets, such as 10m")
    budget: BudgetReport | None = None
    tuning: Tuning | None = Field(None, description="None: the recipe's settings were not tuned")
    experimental: Label | None = Field(None, description="why the dtype is experimental")
    missing: dict[Label, Label] = Field({}, description="what the record lacks → the reason")
    environment: Environment
    plugins: list[PluginReference] = Field(description="plugins that took part, and the harness")
    proof: Proof | None = Field(None, description="None: nobody has checked the record yet")
    created: Label
    digest: str = Field("", description="SHA-256 of the record without this field")

    @model_validator(mode="after")
    def _check(self) -> Record:
        """Refuse names that lead out of a folder or break a table, and results that don't fit."""
        results = list(self.evaluations.values())
        names = [self.spec.task, self.spec.model, *self.evaluations, *self.not_applicable]
        names += [*self.analyses, *self.spec.metrics, *(plugin.name for plugin in self.plugins)]
        names += [name for name in (self.grader and self.grader.name, self.track) if name]
        names += [name for e in results for part in (e, e.floor) for name in part.metrics]
        for name in names:
            if not is_plain_name(name):
                raise ValueError(f"{name[:100]!r} is not a plain name")
        if MAIN not in self.evaluations or self.ranking.metric not in self.main.metrics:
            raise ValueError(f"its evaluation {MAIN!r} or the metric that ranks is missing")
        if not self.seeds or any(len(e.seeds) != len(self.seeds) for e in results):
            raise ValueError("its results are not those of its seeds")
        if any(e.prompts != self.spec.eval_prompts for e in results):
            raise ValueError("its results are not those of as many prompts as its spec says")
        losses = [len(of_seeds) for of_seeds in (self.training.curve if self.training else [])[:1]]
        means = [len(self.validation_curve.mean)] if self.validation_curve else []
        for kind, counts in (("training", losses), ("validation", means)):
            if set(counts) - {len(self.seeds)}:
                raise ValueError(f"its {kind} curve is not that of its seeds")
        for name, analyses in self.analyses.items():
            if not isinstance(analyses, list) or len(analyses) != len(self.seeds):
                raise ValueError(f"the analysis {name!r} is not that of its seeds")
        return self

    @property
    def main(self) -> Evaluation:
        """The evaluation that boards rank by."""
        return self.evaluations[MAIN]

    @property
    def metrics(self) -> dict[str, Statistics]:
        """The statistics of the main evaluation."""
        return self.main.metrics

    @property
    def score(self) -> float | None:
        """The statistic that ranks, of the main evaluation; None where it is not finite."""
        return self.ranking.score(self.metrics[self.ranking.metric])

    @property
    def curves(self) -> dict[str, Curve]:
        """The curves of the main evaluation."""
        return self.main.curves

    @property
    def floor(self) -> dict[str, Statistics]:
        """The statistics of the main evaluation's floor."""
        return self.main.floor.metrics

    @property
    def state_bytes(self) -> float | None:
        """Bytes per prompt that a layer keeps, on average over the layers; None if unknown."""
        if not self.state_sizes:
            return None
        return BYTES[self.spec.dtype] * sum(self.state_sizes) / len(self.state_sizes)

    def __repr__(self) -> str:
        """The run and what ranks it, on a line."""
        shown = "not finite" if self.score is None else f"{self.score:.4g}"
        what = f"{self.spec.model} on {self.spec.task} v{self.spec.task_version}"
        ranked = f"{self.ranking.statistic} of {self.ranking.metric} {shown}"
        return f"<Record {self.id}: {what}, {ranked}>"

    def __str__(self) -> str:
        """As `repr`; `model_dump_json` gives everything."""
        return repr(self)

    def _repr_html_(self) -> str:
        """The record's metrics, as a notebook shows them."""
        spec = self.spec
        title = f"{spec.model} on {spec.task} v{spec.task_version} · {spec.origin} · {spec.dtype}"
        return f"<p><b>{html.escape(title)}</b></p>{self.main._repr_html_()}"

    @property
    def file(self) -> str:
        """Its path in a folder of records: TASK/MODEL-ID.json."""
        return f"{self.spec.task}/{self.spec.model}-{self.id}.json"

    def files(self) -> list[FileReference]:
        """Every file that the record names, once.

        Use it wherever a record's files are copied, deleted, checked or counted.
        """
        return list({reference.name: reference for _, reference in self.named_files()}.values())

    def named_files(self) -> Iterator[tuple[str, FileReference]]:
        """The same files with what each one is; those that are named twice come twice."""
        grades = self.grader.answers if self.grader else None
        singles = {"weights": self.weights_file, "answers": self.answers, "grades": grades}
        yield from ((kind, reference) for kind, reference in singles.items() if reference)
        for name, evaluation in self.evaluations.items():
            yield from ((f"{name}/{k}", ref) for k, ref in evaluation.values.items())
            yield from ((f"{name}/floor/{k}", ref) for k, ref in evaluation.floor.values.items())

    def sealed(self) -> Record:
        """The same record with its digest."""
        content = self.model_dump(mode="json", exclude={"digest"})
        return self.model_copy(update={"digest": digest_of(content)})


def record_schema() -> dict[str, Any]:
    """The JSON Schema of a record."""
    return Record.model_json_schema(mode="serialization")


if __name__ == "__main__":
    print(json.dumps(record_schema(), indent=2))
