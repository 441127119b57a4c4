"""What the function classes share: inputs, the curriculum, and shifts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import (
    Batch,
    Draws,
    PrefixConfig,
    PrefixTask,
    Random,
    Shift,
    input_shifts,
)

from .recipes import SMOKE, paper, quick


class FunctionConfig(PrefixConfig):
    """The sizes of a prompt, and what a stage of a training shows of it."""

    active_dim: int | None = Field(
        None,
        ge=1,
        description="number of input dimensions that are non-zero in training; null: all",
    )
    active_points: int | None = Field(
        None, ge=1, description="number of answers that count in the training loss; null: all"
    )

    @model_validator(mode="after")
    def _parts_are_within_the_prompt(self) -> FunctionConfig:
        if self.active_dim is not None and self.active_dim > self.dim:
            raise ValueError(f"active_dim is at most dim, {self.dim}")
        if self.active_points is not None and self.active_points > self.examples + 1:
            raise ValueError(f"active_points is at most examples + 1, {self.examples + 1}")
        return self


class ScaledConfig(FunctionConfig):
    """The same, and the scale of the values."""

    scale: float = Field(1.0, gt=0, description="factor on all values")


ConfigT = TypeVar("ConfigT", bound=FunctionConfig)


class FunctionTask(PrefixTask[ConfigT]):
    """Predict f(x_{k+1}) from k examples of f, for every k = 0…N; x ~ N(0, I_D)."""

    training_only = frozenset({"active_dim", "active_points"})
    replica_args = frozenset({"active_dim", "active_points"})
    recipes = {"smoke": SMOKE, "quick": quick(), "paper": paper()}
    #: Shifts of the inputs that leave the floor undefined.
    undefined_shifts: ClassVar[frozenset[str]] = frozenset()
    #: Whether values grow with the inputs.
    grows: ClassVar[bool] = True

    @property
    def shifts(self) -> dict[str, Shift]:
        """Those of the inputs, numbers of examples, and those of the class itself."""
        c = self.config
        shifts = input_shifts(c.dim, c.task_seed, scales_targets=self.grows)
        shifts = {name: s for name, s in shifts.items() if name not in self.undefined_shifts}
        for name, count in (("half", c.examples // 2), ("double", 2 * c.examples)):
            if count:
                args = {"examples": count, "active_points": None}
                shifts[f"examples-{name}"] = Shift(f"{count} examples", args)
        return dict(sorted({**shifts, **self.class_shifts()}.items()))

    def class_shifts(self) -> dict[str, Shift]:
        """Shifts of this function class."""
        return {}

    def draw(self, random: Random) -> Draws:
        """x (rows, N+1, D), what the function consists of, and the stage's limits in training."""
        c = self.config
        x = random.normal("x", c.examples + 1, c.dim)
        draws = {"x": x, **self.draw_function(random)}
        if random.training and c.active_dim is not None:
            draws["x"] = x * (torch.arange(c.dim, device=x.device) < c.active_dim)
        if random.training and c.active_points is not None:
            draws["points"] = torch.full((len(x),), c.active_points, device=x.device)
        return draws

    @abstractmethod
    def draw_function(self, random: Random) -> Draws:
        """What defines a function, one per row."""

    @abstractmethod
    def values(self, x: Tensor, draws: Draws) -> Tensor:
        """f(x) of each prompt's function, (B, N+1, 1)."""

    def truth(self, draws: Draws) -> dict[str, Tensor]:
        """What answers and floors are computed from."""
        return {}

    def arrange(self, draws: Draws) -> Batch:
        """Inputs and values in turn; targets beyond the stage's points are NaN."""
        x = draws["x"]
        values = self.values(x, draws)
        target = values
        if "points" in draws:
            inactive = torch.arange(x.shape[1], device=x.device) >= draws["points"][:, None]
            target = values.masked_fill(inactive[:, :, None], torch.nan)
        return Batch(self.prompt_of(x, values[:, :-1]), target, self.truth(draws))


def scale_shifts(config: ScaledConfig) -> dict[str, Shift]:
    """Shifts of the scale of the values."""
    factors = {"third": 1 / 3, "half": 0.5, "double": 2.0, "triple": 3.0}
    return {
        f"values-{name}": Shift(
            f"values multiplied by {factor:.3g}",
            {"scale": factor * config.scale},
            scales_targets=True,
        )
        for name, factor in factors.items()
    }


def resized(summary: str, **args: Any) -> Shift:
    """A shift that sets arguments of the function class."""
    return Shift(summary, args)
