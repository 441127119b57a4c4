"""Task: a distribution over prompts with its targets, metrics and version."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from .config import Config, parse_config
from .draws import Draws, DrawsDigest, EvaluationRandom, Random, TrainingRandom
from .errors import unknown
from .evaluation import EvaluationContext, Model, predict
from .prompts import Batch, map_tensors, require_batch, with_lead
from .recipe import Recipe
from .scoring import Scoring
from .shift import Shift


class TaskConfig(Config):
    """Base of every task's configuration."""

    task_seed: int = Field(
        0, ge=0, description="seed of the task's fixed parameters and pools of prompts"
    )


ConfigT = TypeVar("ConfigT", bound=TaskConfig)


class Task(Scoring, Generic[ConfigT]):
    """A distribution over prompts. A subclass sets the class variables and the abstract methods.

    A task is two functions: `draw`, the independent quantities, and `arrange`, everything that
    follows from them. The harness takes care of precision. In training it draws in the run's dtype
    on the device. In evaluation it draws in float64, rounds the draws once to the run's dtype,
    arranges them in float64, and rounds the prompt; targets stay float64.

    A change that changes any number needs a new `version`.
    """

    required: ClassVar[tuple[str, ...]] = ("name", "version", "Config")
    #: What users type: lower-case words joined by hyphens.
    name: ClassVar[str]
    #: Raised by one whenever any number changes.
    version: ClassVar[int]
    #: The task's arguments, a class derived from `TaskConfig`.
    Config: ClassVar[type[TaskConfig]]
    #: Recipes for this task alone, by name.
    recipes: ClassVar[Mapping[str, Recipe]] = {}
    #: Name of the random streams of evaluation; empty: the task's name.
    stream: ClassVar[str] = ""
    #: Draw and arrange in float64 in training too, and round as in evaluation.
    exact: ClassVar[bool] = False
    #: Draws that no prompt shows, such as noise: they are not rounded.
    unrounded: ClassVar[frozenset[str]] = frozenset()
    #: Names in Config that only affect training, or say where a file lies: records that differ in
    #: them are comparable.
    training_only: ClassVar[frozenset[str]] = frozenset()
    #: Names in Config that affect the draws, but neither their shapes nor `loss`: replicas of one
    #: program, and stages of a training, may differ in them.
    replica_args: ClassVar[frozenset[str]] = frozenset()

    #: The name of the shift that evaluation prompts have; empty: they are as in training.
    shift: str = ""
    _shift: Shift | None = None

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @property
    def title(self) -> str:
        """What boards call the task with this configuration, such as the data that it shows."""
        return self.name

    @property
    def cases(self) -> tuple[int | None, ...]:
        """The cases that evaluation covers in a batch each, such as sizes; None: only one batch."""
        return (None,)

    @property
    def data_digest(self) -> str | None:
        """SHA-256 of the data that the task reads from elsewhere; part of the run's id."""
        return None

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """What defines this instance, from `task_seed` alone: name → float64 tensor."""
        return {}

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where data come from that are not drawn, with digests, as JSON; {} if all are drawn.

        The record keeps it, and `verify` compares it with the task's own.
        """
        return {}

    @property
    def shifts(self) -> Mapping[str, Shift]:
        """The evaluation distributions that are defined for this configuration, by name."""
        return {}

    def shifted(self, name: str) -> Self:
        """The task with evaluation prompts of that shift; raises UsageError for an unknown one."""
        if name not in self.shifts:
            raise unknown("shift", name, list(self.shifts))
        shift = self.shifts[name]
        values = {**self.config.model_dump(), **shift.task_args}
        task = type(self)(parse_config(type(self.config), values, f"shift {name}"))
        task.shift, task._shift = name, shift
        return task

    def at_stage(self, args: Mapping[str, Any]) -> Self:
        """The task that a stage of a training draws prompts from, with other arguments.

        Raises UsageError for an argument that is not among `replica_args`.
        """
        for name in args:
            if name not in self.replica_args:
                raise unknown("argument of a stage", name, sorted(self.replica_args))
        values = {**self.config.model_dump(), **args}
        return type(self)(parse_config(type(self.config), values, f"task {self.name}: stage"))

    def sample_text(self) -> tuple[str, str] | None:
        """A prompt and its answer as text, from data that ship; None if they are numbers."""
        return None

    @property
    def scales_targets(self) -> bool:
        """Whether a shift gives evaluation targets another size."""
        return self._shift is not None and self._shift.scales_targets

    @abstractmethod
    def draw(self, random: Random) -> Draws:
        """The independent quantities of a prompt per row: name → (rows, …).

        What a prompt shows of them is rounded once, so draw an input, not a number behind it.
        """

    @abstractmethod
    def arrange(self, draws: Draws) -> Batch:
        """Prompts and targets that follow from `draws`, in the draws' dtype and on their device.

        Each row must follow from its own row of the draws: those of several replicas are arranged
        together.
        """

    def answer(self, batch: Batch) -> Tensor:
        """The evaluation target, float64; override it where it is the answer to the rounded prompt.

        `batch` has the rounded prompt and the target of `arrange`.
        """
        return batch.target

    def evaluate(self, model: Model, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The metrics of `model` on `batch`; tasks that iterate or generate override this."""
        return self.metrics(predict(model, batch.prompt, context), batch)

    def combine(self, parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        """The values of the evaluation set from those of its batches, in order.

        By default every prompt is in one batch, and values are concatenated.
        """
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def supports_model(self, model: nn.Module) -> str | None:
        """None, or what the model lacks for the evaluation; called before training."""
        return None

    def mask_after(self, prompt: Any, position: int) -> Any | None:
        """The prompt with everything after read-out `position` replaced; None if not supported.

        A causal task overrides this, so that any model can be tested for reading the answers.
        Without it only the harness's sequence models can be tested.
        """
        return None

    def with_query(self, prompt: Any, query: Tensor) -> Any | None:
        """The prompt with `query` (B, Q, D) in every field that shows the query; None if none does.

        A regression task overrides this, so that a model's sensitivity to the query can be
        measured.
        """
        return None

    def round_and_arrange(self, draws: Draws, dtype: torch.dtype) -> Batch:
        """Prompts in `dtype` from float64 draws; the target and truth stay float64."""
        rounded = {
            name: values
            if name in self.unrounded or not values.is_floating_point()
            else values.to(dtype).double()
            for name, values in draws.items()
        }
        batch = require_batch(self.arrange(rounded), self.name)
        return batch._replace(prompt=map_tensors(lambda t: _as(t, dtype), batch.prompt))

    def training_prompts(self, random: TrainingRandom, dtype: torch.dtype) -> Batch:
        """A training prompt in `dtype` per row; fresh ones, unless a task has a fixed pool."""
        draws = self.draw(random)
        if not self.exact:
            return require_batch(self.arrange(draws), self.name)
        batch = self.round_and_arrange(draws, dtype)
        return batch._replace(target=_as(batch.target, dtype))

    def training_batches(
        self, batches: int, size: int, generators: Sequence[torch.Generator], dtype: torch.dtype
    ) -> Batch:
        """Training batches of several replicas, every field (R, batches, size, …).

        They lie on the generators' device. A replica's batches depend on its generator alone.
        """
        draw_dtype = torch.float64 if self.exact else dtype
        counts = [batches * size] * len(generators)
        random = TrainingRandom(generators, counts, draw_dtype, size=size)
        return with_lead(self.training_prompts(random, dtype), len(generators), batches, size)

    def evaluation_batches(self, n: int, seed: int, dtype: torch.dtype) -> list[Batch]:
        """n prompts per case on the CPU, fixed by the task, its configuration and `seed`.

        The prompts of a batch have one shape. The first n of more are the same n.
        """
        return [self._evaluation_batch(random, dtype) for random in self._randoms(n, seed)]

    def evaluation_parts(
        self, n: int, seed: int, dtype: torch.dtype, rows: int, digest: DrawsDigest | None = None
    ) -> Iterator[list[Batch]]:
        """The same prompts in parts of at most `rows` per case, made when they are needed.

        The raw draws behind them are added to `digest`. A task with its own `evaluation_batches`,
        whose prompts come from data, has a single part.
        """
        if type(self).evaluation_batches is not Task.evaluation_batches:
            if digest is not None:
                digest.add(self.evaluation_draws(n, seed))
            yield self.evaluation_batches(n, seed, dtype)
            return
        randoms = self._randoms(0, seed)
        for start in range(0, n, rows):
            batches = []
            for random in randoms:
                random.next_rows(min(rows, n - start))
                batches.append(self._evaluation_batch(random, dtype))
                if digest is not None:
                    digest.add(random.recorded)
            yield batches

    def _randoms(self, n: int, seed: int) -> list[EvaluationRandom]:
        return [EvaluationRandom(self.stream or self.name, n, seed, case) for case in self.cases]

    def _evaluation_batch(self, random: EvaluationRandom, dtype: torch.dtype) -> Batch:
        batch = self.round_and_arrange(self._draw_shifted(random), dtype)
        return batch._replace(target=self.answer(batch))

    def _draw_shifted(self, random: Random) -> Draws:
        draws, shift = self.draw(random), self._shift
        return draws if shift is None or shift.change is None else shift.change(draws, random)

    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """The raw draws behind the evaluation set, which its digest covers."""
        recorded: dict[str, np.ndarray] = {}
        for random in self._randoms(n, seed):
            self._draw_shifted(random)
            recorded |= random.recorded
        return recorded

    def draws_digest(self) -> DrawsDigest:
        """The digest of an evaluation set, before any draws are added."""
        return DrawsDigest("/".join(filter(None, [self.name, str(self.version), self.shift])))

    def evaluation_digest(self, n: int, seed: int) -> str:
        """SHA-256 of the raw draws, which names the evaluation set in a record."""
        digest = self.draws_digest()
        digest.add(self.evaluation_draws(n, seed))
        return digest.hexdigest()


def training_batch(
    task: Task[Any], n: int, generator: torch.Generator, dtype: torch.dtype
) -> Batch:
    """n training prompts with their targets on the generator's device, every field (n, …).

    They are n batches of one prompt, so that nothing is shared between them.
    """
    batch = task.training_batches(n, 1, [generator], dtype)
    return Batch(map_tensors(lambda t: t[0, :, 0], batch.prompt), batch.target[0, :, 0])


def _as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Real numbers in `dtype`, integers as they are."""
    return tensor.to(dtype) if tensor.is_floating_point() else tensor
