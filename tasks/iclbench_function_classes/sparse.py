"""The task `sparse-linear`, and its Bayes predictor: a mixture over all supports."""

from __future__ import annotations

import itertools
import math

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Batch, Draws, FloorKind, Random, Shift, exact_least_squares, exact_matmul

from .base import FunctionTask, ScaledConfig, resized, scale_shifts
from .recipes import SMOKE, paper, quick

#: The Bayes predictor weighs every support; 20 choose 3 are 1,140.
MOST_SUPPORTS = 20_000
#: Prompts whose supports are weighed at once: 64 × 1,140 covariances of 3 × 3 are 5 MB.
ROWS = 64


class SparseConfig(ScaledConfig):
    """The sizes of a prompt, and the number of non-zero weights."""

    sparsity: int = Field(
        3, ge=1, description="s, number of non-zero weights, at random coordinates"
    )

    @model_validator(mode="after")
    def _supports_can_be_weighed(self) -> SparseConfig:
        if self.sparsity > self.dim:
            raise ValueError(f"sparsity is at most dim, {self.dim}")
        if self.active_dim is not None and self.sparsity > self.active_dim:
            raise ValueError(f"sparsity is at most active_dim, {self.active_dim}")
        if math.comb(self.dim, self.sparsity) > MOST_SUPPORTS:
            raise ValueError(f"dim and sparsity give more than {MOST_SUPPORTS:,} supports")
        return self


class SparseLinear(FunctionTask[SparseConfig]):
    """y = w·x with s non-zero weights, N(0, scale²), on a uniformly random support.

    With s = D it is linear regression.
    """

    name = "sparse-linear"
    version = 1
    Config = SparseConfig
    replica_args = FunctionTask.replica_args | {"sparsity", "scale"}
    recipes = {"smoke": SMOKE, "quick": quick(dim=6, sparsity=2), "paper": paper()}
    floor_summary = (
        "Least squares on the s non-zero weights, which s + 1 examples identify, solved exactly "
        "for the rounded prompt. For k ≤ s, and with N ≤ s < D, it is the Bayes predictor: the "
        "posterior mean over all choices of the s weights."
    )
    # On ±1, or in a subspace of few dimensions, several supports fit the same values.
    undefined_shifts = frozenset({"signs"})

    @property
    def floor_kind(self) -> FloorKind:
        """`exact` if all N examples determine w."""
        return "exact" if self._is_determined(self.config.examples) else "bayes"

    def _is_determined(self, examples: int) -> bool:
        c = self.config
        return examples > c.sparsity or examples >= c.dim

    @property
    def shifts(self) -> dict[str, Shift]:
        """Without half a subspace of at most s dimensions, in which supports can't be told."""
        shifts = super().shifts
        if self.config.dim // 2 <= self.config.sparsity:
            shifts.pop("half-subspace", None)
        return shifts

    def class_shifts(self) -> dict[str, Shift]:
        """Other scales of the values, and other numbers of non-zero weights."""
        c, shifts = self.config, scale_shifts(self.config)
        if c.sparsity > 1:
            shifts["sparsity-one"] = resized("1 non-zero weight", sparsity=1)
        more = 2 * c.sparsity
        if more <= c.dim and math.comb(c.dim, more) <= MOST_SUPPORTS and c.active_dim is None:
            shifts["sparsity-double"] = resized(f"{more} non-zero weights", sparsity=more)
        return shifts

    def draw_function(self, random: Random) -> Draws:
        """w (rows, D, 1), and scores (rows, D), of which the s smallest are the support."""
        c = self.config
        w = random.normal("w", c.dim, 1)
        scores = random.uniform("scores", c.dim)
        if random.training and c.active_dim is not None:
            # Within the active dimensions: elsewhere a weight would change nothing.
            scores = scores + (torch.arange(c.dim, device=scores.device) >= c.active_dim)
        return {"w": w, "scores": scores}

    def values(self, x: Tensor, draws: Draws) -> Tensor:
        """x w, (B, N+1, 1)."""
        return x @ self._weights(draws)

    def _weights(self, draws: Draws) -> Tensor:
        """w (B, D, 1), with zeros off the support."""
        support = self._support(draws)
        chosen = torch.zeros_like(draws["w"]).scatter(1, support.unsqueeze(2), 1.0)
        return self.config.scale * draws["w"] * chosen

    def _support(self, draws: Draws) -> Tensor:
        """The coordinates with a weight, (B, s)."""
        return draws["scores"].argsort(dim=1)[:, : self.config.sparsity]

    def truth(self, draws: Draws) -> dict[str, Tensor]:
        """The weights and their support."""
        return {"w": self._weights(draws), "support": self._support(draws)}

    def answer(self, batch: Batch) -> Tensor:
        """wᵀx of every rounded input, exact products."""
        return exact_matmul(batch.prompt.inputs(), batch.truth["w"])

    def reference(self, batch: Batch) -> Tensor:
        """The posterior mean: the same formula as the exact answer."""
        return self.exact_answer(batch)

    def exact_answer(self, batch: Batch) -> Tensor:
        """Least squares on the support for prefixes that determine it, the posterior mean before.

        More than s examples almost surely fit no other support, so it may be taken from the truth.
        """
        c, prompt = self.config, batch.prompt
        inputs = prompt.inputs().double()
        # With s = D, as many examples determine the weights too.
        few = min(c.sparsity, c.examples, c.dim - 1)
        answers = [posterior_means(inputs, prompt.y.double(), few, c.sparsity, c.scale)]
        on_support = inputs.gather(
            2, batch.truth["support"][:, None].expand(-1, len(inputs[0]), -1)
        )
        for k in range(few + 1, c.examples + 1):
            x, query = on_support[:, :k], on_support[:, k : k + 1]
            answers.append(exact_least_squares(x, prompt.y[:, :k], query=query))
        return torch.cat(answers, dim=1)


def posterior_means(x: Tensor, y: Tensor, most: int, sparsity: int, scale: float) -> Tensor:
    """E[w·x_{k+1} | k examples] for k = 0…most ≤ s, (B, most + 1, 1), by weighing every support.

    x is (B, N+1, D), y (B, N, 1), without noise. For each support the posterior of its weights is
    updated by one example at a time, w ~ N(m, P): with v = Px and r = y − x·m, m += v r/(x·v) and
    P −= vvᵀ/(x·v). The support's density is multiplied by N(r; 0, x·v).
    """
    supports = torch.tensor(list(itertools.combinations(range(x.shape[2]), sparsity)))
    parts = zip(torch.split(x, ROWS), torch.split(y, ROWS), strict=True)
    return torch.cat([_weighed(a, b, most, supports, scale) for a, b in parts])


def _weighed(x: Tensor, y: Tensor, most: int, supports: Tensor, scale: float) -> Tensor:
    count, size = supports.shape
    mean = x.new_zeros(len(x), count, size)
    covariance = scale**2 * torch.eye(size, dtype=x.dtype).expand(len(x), count, size, size)
    log_density = x.new_zeros(len(x), count)
    answers = []
    for k in range(most + 1):
        chosen = x[:, k][:, supports]
        predicted = (chosen * mean).sum(dim=2)
        answers.append((log_density.softmax(dim=1) * predicted).sum(dim=1))
        if k == most:
            break
        v = (covariance @ chosen.unsqueeze(3)).squeeze(3)
        variance = (chosen * v).sum(dim=2)
        rest = y[:, k] - predicted
        log_density = log_density - 0.5 * (variance.log() + rest.square() / variance)
        mean = mean + v * (rest / variance).unsqueeze(2)
        covariance = covariance - v.unsqueeze(3) * v.unsqueeze(2) / variance[:, :, None, None]
    return torch.stack(answers, dim=1).unsqueeze(2)
