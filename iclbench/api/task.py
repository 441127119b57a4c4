"""Task: a distribution over prompts with its targets, metrics and version."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from .config import Config
from .prompts import Batch, Signature, map_tensors, stack, to_device, with_lead
from .recipe import Recipe

if TYPE_CHECKING:
    from .grader import Grader


Model = Callable[[Any], Tensor]


class TaskConfig(Config):
    """Base of every task's configuration."""

    task_seed: int = Field(0, ge=0, description="seed of the task's own parameters and pools")


class Primary(NamedTuple):
    """The number that a task ranks by: a metric, which way is better, and its statistic.

    On a log scale models are compared, and shown, by their digits: for errors that span orders of
    magnitude.
    """

    metric: str
    better: Literal["lower", "higher"] = "lower"
    statistic: Literal["mean", "median"] = "median"
    scale: Literal["log", "linear"] = "log"


class Axis(NamedTuple):
    """The second axis of a metric: its name (prefix, iterate, size) and its values."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class EvaluationContext:
    """What an evaluation may use: a device, a generator of its own, a folder for files, a limit
    on the prompts a model sees at once (None: all), a grader for what a model writes.
    """

    device: torch.device
    generator: torch.Generator
    folder: Path | None = None
    batch_size: int | None = None
    grader: Grader | None = None


ConfigT = TypeVar("ConfigT", bound=TaskConfig)


class Task(ABC, Generic[ConfigT]):
    """A distribution over prompts. Subclasses set the class variables and the abstract methods.

    A change that changes any number needs a new `version`.
    """

    required: ClassVar[tuple[str, ...]] = ("name", "version", "Config")
    name: ClassVar[str]
    version: ClassVar[int]
    Config: ClassVar[type[TaskConfig]]
    recipes: ClassVar[Mapping[str, Recipe]] = {}
    #: Metrics that are no squared errors: errors themselves, or digits, −log₁₀ of a squared error.
    scales: ClassVar[Mapping[str, Literal["first", "digits"]]] = {}
    #: Names in Config that matter to training alone, or say where a file lies: records that differ
    #: in them are comparable.
    training_only: ClassVar[frozenset[str]] = frozenset()
    #: Whether `evaluate` gives what a model writes to the context's grader, where there is one.
    gradable: ClassVar[bool] = False
    #: What tables call the row of the floor.
    floor_name: ClassVar[str] = "floor"
    #: Names in Config that the draws alone depend on, not their shapes and not `loss`: replicas of
    #: one program may differ in them.
    replica_args: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @property
    def primary(self) -> Primary:
        """The metric that leaderboards rank by."""
        return Primary("squared_error")

    @property
    @abstractmethod
    def signature(self) -> Signature:
        """The static facts that a model is built for."""

    @property
    def data_digest(self) -> str | None:
        """SHA-256 of the data that the task reads from elsewhere; it enters the run's id."""
        return None

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """What defines this instance, from `task_seed` alone: name → float64 tensor."""
        return {}

    @property
    def provenance(self) -> Mapping[str, Any]:
        """JSON: where data that are not drawn come from, with digests; {} where all are drawn.

        It is kept in the record, and `verify` holds the task's own against it.
        """
        return {}

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The second axis of each metric that has one."""
        return {}

    @abstractmethod
    def sample(
        self, n: int, generator: torch.Generator, device: torch.device, dtype: torch.dtype
    ) -> Batch:
        """n training prompts with their targets, drawn on `device` from `generator` alone."""

    def sample_batches(
        self,
        batches: int,
        size: int,
        generator: torch.Generator,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Batch:
        """Training batches, every field (batches, size, …); one whose prompts share something
        overrides this.
        """
        found = self.sample(batches * size, generator, device, dtype)
        return with_lead(found, batches, size)

    def sample_replicas(
        self,
        batches: int,
        size: int,
        generators: Sequence[torch.Generator],
        device: torch.device,
        dtype: torch.dtype,
    ) -> Batch:
        """Training batches of several replicas, every field (R, batches, size, …): for each of the
        generators what `sample_batches` gives. One that can compute some of it for all replicas at
        once overrides this; see `DrawnTask`. Where a subclass overrides `sample` alone, replicas
        are drawn one by one.
        """
        return stack([self.sample_batches(batches, size, g, device, dtype) for g in generators])

    @abstractmethod
    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """The raw float64 draws behind the evaluation set; the first n of more are the same n."""

    @abstractmethod
    def evaluation_set(self, n: int, seed: int, dtype: torch.dtype) -> list[Batch]:
        """n prompts on the CPU, fixed by (name, version, config, seed), one static shape a batch.

        Independent inputs are rounded once to `dtype`; what depends on them is computed in
        float64 from the rounded; targets stay float64.
        """

    @abstractmethod
    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The training loss of each prompt, (B,)."""

    @abstractmethod
    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """float64 values for each prompt, (B,), or (B, n) for a metric named in `axes`.

        `prediction` is float64 on the CPU, where `batch` is.
        """

    @abstractmethod
    def reference(self, batch: Batch) -> Tensor | None:
        """The prediction of the task's own reference in the prompt's dtype, which is the floor.

        None where there is neither a reference nor a bound.
        """

    def floor(self, batch: Batch) -> dict[str, Tensor]:
        """The metrics of the reference, or a bound on them; {} where there is none."""
        found = self.reference(batch)
        return {} if found is None else self.metrics(found.to("cpu", torch.float64), batch)

    def evaluate_floor(self, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The floor as it is measured beside models; tasks that grade it override this."""
        return self.floor(batch)

    def supports_model(self, model: nn.Module) -> str | None:
        """None, or what the model lacks for the evaluation; asked before anything is trained."""
        return None

    def conceal(self, prompt: Any, position: int) -> Any | None:
        """The prompt with all that comes after read-out `position` replaced.

        A causal task gives it so that any model can be asked whether it reads the answers; None
        where only the harness's sequence models can be asked.
        """
        return None

    def ask(self, prompt: Any, query: Tensor) -> Any | None:
        """The prompt with the query (B, Q, D) in place of its own, in every field that shows it.

        A regression task gives it so that a model's sensitivity to the query can be measured.
        """
        return None

    def evaluate(self, model: Model, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The metrics of `model` on `batch`; tasks that iterate or generate override this."""
        return self.metrics(predict(model, batch.prompt, context), batch)

    def combine(self, parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        """The values of the whole evaluation set from those of each of its batches, in order.

        By default a prompt is in one batch, and values are put one after the other.
        """
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def completions(self, models: int, prompts: int) -> int:
        """How many completions a grader gets in a run: costs are estimated by it beforehand.

        A gradable task overrides this where it has fewer graded, or those of its floor too.
        """
        return models * prompts

    def evaluation_digest(self, n: int, seed: int) -> str:
        """SHA-256 of the raw draws, which names the evaluation set in a record."""
        digest = hashlib.sha256(f"{self.name}/{self.version}".encode())
        for name, values in sorted(self.evaluation_draws(n, seed).items()):
            digest.update(f"{name}{values.shape}{values.dtype}".encode())
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


def predict(model: Model, prompt: Any, context: EvaluationContext) -> Tensor:
    """The model's prediction for `prompt`, (B, P, W), in float64 on the CPU."""
    total = len(prompt[0])
    size = context.batch_size or total
    parts = []
    for start in range(0, total, size):
        part = map_tensors(lambda t, s=start: t[s : s + size], prompt)
        parts.append(model(to_device(part, context.device)).to("cpu", torch.float64))
    return torch.cat(parts)
