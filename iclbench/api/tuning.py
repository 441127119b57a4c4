"""Tuning: the document of a search for a model's and a recipe's arguments on one board."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from .config import Config, added_later
from .random import derive_seed
from .ranking import Ranking
from .recipe import Schedule
from .record import Tuning
from .spec import ResolvedSpec, canonical_json, digest_of

#: A trial trains for this share of the budget, or of the steps.
SHARE = 0.1
#: Scores that differ by so many digits, or this share of a mean, differ by noise in short trials.
NEGLIGIBLE = 0.05


def _list_like(example: str) -> BeforeValidator:
    """Refuse anything but a list; pydantic's own error speaks of Python's types."""

    def check(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise ValueError(f"a list is needed, such as {example}")
        return value

    return BeforeValidator(check)


Range = Annotated[
    tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]], _list_like("[1e-4,1e-2]")
]
Values = Annotated[tuple[Any, ...], _list_like("[1,2,4]")]


class OptimizerChoice(Config):
    """An optimizer that a search may choose, with its arguments."""

    name: str
    args: dict[str, Any] = {}


class SearchSpace(Config):
    """What a search may choose: ranges are drawn log-uniformly, values of lists alike."""

    learning_rate: Range = Field(description="range of learning rates: low, high")
    init_std: Range | None = Field(
        None, description="range of standard deviations of the initial weights: low, high"
    )
    optimizers: Annotated[
        tuple[OptimizerChoice, ...], Field(min_length=1), _list_like('["adam","soap"]')
    ]
    schedules: Annotated[
        tuple[Schedule, ...], Field(min_length=1), _list_like('["cosine","constant"]')
    ]
    model_args: dict[str, Values] = Field({}, description="values of the model's arguments")

    @model_validator(mode="after")
    def _check(self) -> SearchSpace:
        for low, high in filter(None, (self.learning_rate, self.init_std)):
            if low > high:
                raise ValueError(f"the range {low} … {high} is empty")
        for name, values in self.model_args.items():
            if not values:
                raise ValueError(f"model_args: {name} has no values")
        return self

    def contains(self, model_args: dict[str, Any], recipe_args: dict[str, Any]) -> bool:
        """Whether a search of this space can choose these arguments."""
        optimizer = (recipe_args.get("optimizer"), recipe_args.get("optimizer_args"))
        scale = model_args.get("init_std")
        shape = {name: value for name, value in model_args.items() if name in self.model_args}
        return (
            _within(recipe_args.get("learning_rate"), self.learning_rate)
            and optimizer in [(choice.name, choice.args) for choice in self.optimizers]
            and recipe_args.get("schedule") in self.schedules
            and shape.keys() == self.model_args.keys()
            and all(value in self.model_args[name] for name, value in shape.items())
            and (scale is None if self.init_std is None else _within(scale, self.init_std))
        )


def _within(value: Any, limits: Range) -> bool:
    """Whether a number is in a range, up to its rounding to two digits."""
    return isinstance(value, int | float) and 0.94 * limits[0] <= value <= 1.06 * limits[1]


class Trial(Config):
    """One point of the space: its arguments, and what training by them gave."""

    model_args: dict[str, Any]
    recipe_args: dict[str, Any]
    score: float | None = Field(
        None, description="the ranked statistic on the tuning prompts; null: not finite, or failed"
    )
    run: str | None = Field(None, description="the run's id")
    steps: int | None = Field(None, ge=1)
    failure: str | None = None


class TuningCost(Config):
    """What all trials took together."""

    core_seconds: float = Field(ge=0)
    wall_seconds: float = Field(ge=0)
    device_seconds: float | None = Field(None, ge=0)


class TuningDocument(Config):
    """A finished search: for what, over which space, with which trials, and what was chosen.

    Its prompts and seeds are derived by name from those of the board, which uses none of them.
    """

    version: Literal[1] = 1
    model: str
    task: str
    task_version: int
    task_args: dict[str, Any] = Field(description="arguments of the task, with defaults")
    dtype: Literal["float32", "float64"]
    recipe: str
    start: dict[str, Any] = added_later(
        {}, description="the weights that trials start from, where they are given: `start_of`"
    )
    base_model_args: dict[str, Any] = Field(description="arguments that are given, not searched")
    base_recipe_args: dict[str, Any] = Field(description="arguments that are given, not searched")
    budget: str | None = Field(
        description="training budget of the run that is tuned; a trial's is a tenth of it"
    )
    ranking: Ranking
    evaluation_seed: int
    evaluation_prompts: int = Field(ge=1)
    seeds: tuple[int, ...]
    search_seed: int
    space: SearchSpace
    trials: tuple[Trial, ...] = Field(min_length=1)
    chosen: int = Field(
        ge=0,
        description="index of the best trial, or 0, the recipe's own settings, where the best is "
        "hardly better",
    )
    cost: TuningCost
    device: str
    versions: dict[str, str]
    created: str

    @model_validator(mode="after")
    def _chosen_is_the_best(self) -> TuningDocument:
        known = (None, self.evaluation_prompts)
        rules = (own_or_best(self.trials, self.ranking, prompts) for prompts in known)
        if self.chosen not in {best_trial(self.trials, self.ranking), *rules}:
            raise ValueError("the chosen trial is not the best")
        for trial in self.trials:
            if trial.score is not None and (trial.run is None or trial.steps is None):
                raise ValueError("a trial with a score names its run and its steps")
            if not self.space.contains(trial.model_args, trial.recipe_args):
                raise ValueError("a trial is not of the space")
        return self

    @property
    def best(self) -> Trial:
        """The chosen trial."""
        return self.trials[self.chosen]


def best_trial(trials: tuple[Trial, ...], ranking: Ranking) -> int | None:
    """The index of the best score, the first of equals; None if there is none."""
    scores = [(ranking.goodness(t.score), -i) for i, t in enumerate(trials) if t.score is not None]
    return -max(scores)[1] if scores else None


def own_or_best(
    trials: tuple[Trial, ...], ranking: Ranking, prompts: int | None = None
) -> int | None:
    """The index of the best trial if it is clearly better than the first, else 0.

    The first has the recipe's own settings. If no trial of a short search has learned anything,
    noise would choose settings that may fail for good. Scores that are fractions of right answers,
    on so many `prompts`, differ by chance alone.
    """
    best = best_trial(trials, ranking)
    if best is None or trials[0].score is None:
        return best
    first_score, best_score = (ranking.goodness(trials[i].score) for i in (0, best))
    least = negligible_gain(ranking, first_score)
    if prompts is not None:
        least = max(least, *(fraction_noise(abs(s), prompts) for s in (first_score, best_score)))
    return best if best_score - first_score > least else 0


def fraction_noise(score: float, prompts: int) -> float:
    """How far the fractions of right answers of equal models may be apart on so many prompts.

    Four standard errors of one answer a prompt, for the best of many; 0 for what is no fraction.
    """
    if not 0 <= score <= 1:
        return 0.0
    return 4 * math.sqrt(score * (1 - score) / prompts)


def negligible_gain(ranking: Ranking, score: float) -> float:
    """The difference from a score, in its units, that short trials can't tell from noise."""
    return NEGLIGIBLE * (1.0 if ranking.has_digits else abs(score))


def sealed_tuning(document: TuningDocument) -> Tuning:
    """The document as records embed it."""
    content = document.model_dump(mode="json")
    return Tuning(sha256=digest_of(content), document=content)


def tuning_bytes(tuning: Tuning) -> bytes:
    """The content of a tuning's file."""
    return (canonical_json(tuning.document) + "\n").encode()


def start_of(spec: ResolvedSpec) -> dict[str, Any]:
    """What a training from given weights starts from, as JSON; empty where it starts at random."""
    if spec.init is None:
        return {}
    names = {"weights_args", "freeze", "perturb"}
    return {
        "init": spec.checkpoint_digest or spec.init,
        **spec.model_dump(mode="json", include=names),
    }


def tuning_seeds(count: int) -> tuple[int, ...]:
    """Seeds of training that no board uses."""
    return tuple(derive_seed("tuning", index) for index in range(count))


def tuning_evaluation_seed(eval_seed: int) -> int:
    """The seed of the tuning prompts, derived from that of the board's."""
    return derive_seed("tuning evaluation", eval_seed)
