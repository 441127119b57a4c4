"""The tasks `read`, `affine`, `multiply` and `square`.

The paper samples the indices and weights "at each iteration". They are not in the prompt, so they
could not be learned. Here they are drawn once from `task_seed`: they are the task's `parameters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Batch, exact_matmul, philox

from .base import Primitive, PrimitiveConfig


class ReadConfig(PrimitiveConfig):
    """The rows that may be drawn."""

    length: int = Field(40, ge=2, description="N, number of rows of the sequence")
    order: Literal["forward", "any"] = Field(
        "forward",
        description="forward: i < j, for causal models; any: i ≠ j, as in the paper",
    )


class Read(Primitive[ReadConfig]):
    """Row j becomes row i, the others stay (Liu et al., eq. 5); i ≠ j are the parameters."""

    name = "read"
    version = 1
    Config = ReadConfig
    floor_summary = (
        "The rows themselves, which are exact, so the error is the smallest that counts."
    )

    @property
    def outputs(self) -> int:
        """D."""
        return self.config.dim

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """i and j, uniform; from 0."""
        # From `task_seed` and not from the run's seed: all runs read the same rows.
        rng = philox("read", self.config.task_seed)
        i, j = rng.choice(self.config.length, size=2, replace=False).tolist()
        if self.config.order == "forward":
            # A causal model at row j can't see a later row i.
            i, j = sorted((i, j))
        return {name: torch.tensor(float(value), dtype=torch.float64)
                for name, value in (("i", i), ("j", j))}  # fmt: skip

    def function(self, u: Tensor) -> Tensor:
        """u with row j replaced by row i."""
        i, j = (int(self.parameters[name]) for name in ("i", "j"))
        return torch.cat([u[:, :j], u[:, i : i + 1], u[:, j + 1 :]], dim=1)


class Affine(Primitive[PrimitiveConfig]):
    """xᵀh of every row x (Liu et al., eq. 6 and D.2.3); h ~ N(0, 3I) is the parameter."""

    name = "affine"
    version = 2
    Config = PrimitiveConfig
    floor_summary = "The products of the rounded rows with h in float64, computed exactly."

    @property
    def outputs(self) -> int:
        """1."""
        return 1

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """h (D,), each entry of variance 3."""
        h = philox("affine", self.config.task_seed).standard_normal(self.config.dim)
        # The paper's N(0, 3I) has the variance 3, not the standard deviation.
        return {"h": 3.0**0.5 * torch.from_numpy(h)}

    def function(self, u: Tensor) -> Tensor:
        """u · h."""
        return u @ self.parameters["h"].to(u)[:, None]

    def answer(self, batch: Batch) -> Tensor:
        """u · h, exact products rounded once."""
        h = self.parameters["h"][:, None]
        # A float64 product would round at every multiplication and addition.
        return exact_matmul(batch.prompt.tokens, h.expand(len(batch.target), -1, -1))


class EvenConfig(PrimitiveConfig):
    """An even width."""

    @model_validator(mode="after")
    def _has_halves(self) -> EvenConfig:
        if self.dim % 2:
            raise ValueError("multiply needs an even dim")
        return self


class Multiply(Primitive[EvenConfig]):
    """The product of the first and the second half of every row (Liu et al., eq. 7, D.2.3)."""

    name = "multiply"
    version = 1
    Config = EvenConfig
    floor_summary = "The products of rounded entries, rounded once."

    @property
    def outputs(self) -> int:
        """D/2."""
        return self.config.dim // 2

    def function(self, u: Tensor) -> Tensor:
        """u[:D/2] ⊙ u[D/2:]."""
        # MULTIPLY(0, D/2, D/2).
        return u[..., : self.outputs] * u[..., self.outputs :]


class Square(Primitive[PrimitiveConfig]):
    """The square of every entry, MULTIPLY(0, 0, D) (Liu et al., eqs. 8–9)."""

    name = "square"
    version = 1
    Config = PrimitiveConfig
    floor_summary = "The squares of rounded entries, rounded once."

    @property
    def outputs(self) -> int:
        """D."""
        return self.config.dim

    def function(self, u: Tensor) -> Tensor:
        """u ⊙ u."""
        return u.square()

    def chance(self, batch: Batch) -> dict[str, Tensor]:
        """A constant prediction of 1, the mean of a square."""
        # The default of 0 is no chance prediction here: squares have the mean 1.
        return self.metrics(torch.ones_like(batch.target), batch)
