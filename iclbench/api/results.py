"""What an evaluation leaves in a record: statistics, curves, and references to the values."""

from __future__ import annotations

import html
import math
from typing import Any, Literal

from pydantic import Field, model_validator

from .config import Config, added_later
from .floor import FloorKind
from .names import Label
from .statistics import Curve, Statistics

#: Prompts whose answers a record holds, and the most numbers of one answer.
FIRST_PROMPTS, MOST_NUMBERS = 3, 32
#: The most values of all metrics of an evaluation: 1 GiB.
MOST_VALUES = 2**27
#: The most cases of a task, each of which has all prompts.
MOST_CASES = 100
#: Numbers by seed, prompt and place in the answer; None where one is not finite.
Answers = tuple[tuple[tuple[float | None, ...], ...], ...]


class FileReference(Config):
    """A file of the store. Its name is its content's: `objects/AB/ABCDEF….FORMAT`."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the file's bytes")
    format: Literal["safetensors", "jsonl", "f64.zst"] = Field(
        description="f64.zst: little-endian float64, bytes shuffled, one zstd frame"
    )
    shape: tuple[int, ...] | None = Field(None, description="shape of an array in f64.zst")

    @property
    def name(self) -> str:
        """The file's path below the folder of the records."""
        return f"objects/{self.sha256[:2]}/{self.sha256}.{self.format}"


class FloorReport(Config):
    """The task's floor on the prompts of an evaluation."""

    kind: FloorKind = Field(
        description="exact: the exact answer to the rounded prompt, rounded once; bayes: the best "
        "predictor of a target that the prompt does not determine; bound: values that no predictor "
        "is expected to pass; none: values of a reference, which are no bound"
    )
    name: Label = Field(description="the label of the floor's row in tables")
    prompts: int = Field(description="number of prompts of each case that it was computed on")
    metrics: dict[str, Statistics] = {}
    curves: dict[str, Curve] = {}
    values: dict[str, FileReference] = Field(
        {}, description="metric → its value for every prompt, (prompts[, axis])"
    )


class Evaluation(Config):
    """The models' metrics on one set of prompts."""

    title: str = Field(max_length=100, description="what boards call the task with these arguments")
    seed: int
    shift: Label | None = Field(None, description="the task's distribution other than the trained")
    target_size: float | None = added_later(
        None, description="the root mean square of the targets, where a shift scales them"
    )
    prompts: int = Field(description="number of prompts of each case")
    digest: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the raw float64 draws")
    task_args: dict[str, Any] = Field(
        description="the task's arguments, without those that affect only training"
    )
    provenance: dict[str, Any] = Field(
        {}, description="the sources of data that are not drawn, with their digests"
    )
    metrics: dict[str, Statistics] = Field(description="over all seeds and prompts")
    seeds: list[dict[str, Statistics]] = Field(description="for each of the record's `seeds`")
    curves: dict[str, Curve] = Field({}, description="metrics along their second axis")
    floor: FloorReport
    values: dict[str, FileReference] = Field(
        description="metric → its value for every seed and prompt, (seeds, prompts[, axis])"
    )
    seconds: float
    answers: Answers | None = added_later(
        None, description="what each seed answers to the first prompts, where it is a few numbers"
    )

    def _repr_html_(self) -> str:
        """The metrics beside their floors, as a notebook shows them."""
        head = "".join(f"<th>{name}</th>" for name in ("metric", "mean", "median", "99%", "floor"))
        rows = ""
        for name, statistics in self.metrics.items():
            floor = self.floor.metrics[name].mean if name in self.floor.metrics else None
            numbers = (statistics.mean, statistics.median, statistics.q99, floor)
            cells = "".join(f"<td>{'' if n is None else format(n, '.4g')}</td>" for n in numbers)
            rows += f"<tr><th>{html.escape(name)}</th>{cells}</tr>"
        return f"<table><tr>{head}</tr>{rows}</table>"

    @model_validator(mode="after")
    def _check(self) -> Evaluation:
        """Refuse parts that don't fit: every metric has statistics, for each seed, and values."""
        for part in (self, self.floor):
            if set(part.metrics) != set(part.values):
                raise ValueError("metrics and values differ")
            for name, curve in part.curves.items():
                columns = (curve.mean, curve.median, curve.max, curve.low, curve.high)
                if name not in part.metrics or any(len(c) != len(curve.values) for c in columns):
                    raise ValueError(f"the curve of {name!r} is uneven")
                if name in self.curves and len(curve.values) != len(self.curves[name].values):
                    raise ValueError(f"the curve of {name!r} is not as long as its floor's")
        if any(set(metrics) != set(self.metrics) for metrics in self.seeds):
            raise ValueError("the metrics of its seeds differ")
        self._check_values()
        self._check_answers()
        return self

    def _check_values(self) -> None:
        """Refuse values of other seeds and prompts: a tiny file may unpack to any size."""
        for name, reference in self.values.items():
            if not _is_array(reference, 2) or (reference.shape or ())[0] != len(self.seeds):
                raise ValueError(f"the values of {name!r} are not those of its seeds and prompts")
        for name, reference in self.floor.values.items():
            if not _is_array(reference, 1):
                raise ValueError(f"the floor's values of {name!r} are not those of prompts")
        for files in (self.values, self.floor.values):
            total = sum(math.prod(file.shape or ()) for file in files.values())
            if total > MOST_VALUES:
                raise ValueError(f"it has {total:,} values; at most {MOST_VALUES:,} are read")
        shapes = [tuple(file.shape or ())[1:] for file in self.values.values()]
        shapes += [tuple(file.shape or ()) for file in self.floor.values.values()]
        for shape in shapes:
            if shape[0] > MOST_CASES * self.prompts:
                raise ValueError(f"values {shape} are not those of {self.prompts:,} prompts")

    def _check_answers(self) -> None:
        if self.answers is None:
            return
        prompts = {len(prompts) for prompts in self.answers}
        numbers = {len(numbers) for prompts in self.answers for numbers in prompts}
        if len(self.answers) != len(self.seeds) or len(prompts) != 1 or len(numbers) != 1:
            raise ValueError("the answers are not those of its seeds and first prompts")
        if prompts != {min(FIRST_PROMPTS, self.prompts)} or not 1 <= max(numbers) <= MOST_NUMBERS:
            raise ValueError(
                f"the answers are not those of {FIRST_PROMPTS} prompts, or not 1 to {MOST_NUMBERS} "
                "numbers long"
            )


def _is_array(reference: FileReference, axes: int) -> bool:
    """Whether a file holds numbers with so many axes or one more."""
    shape = reference.shape or ()
    return reference.format == "f64.zst" and len(shape) in {axes, axes + 1}
