"""The task `task-diversity`: noisy linear regression whose weights come from a pool."""

from __future__ import annotations

from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor

from iclbench import (
    Batch,
    Draws,
    FloorKind,
    PrefixConfig,
    PrefixTask,
    Random,
    Shift,
    exact_least_squares,
    exact_matmul,
    philox,
)

from .estimators import discrete_mmse, ridge_means
from .recipes import PAPER, QUICK, SMOKE

#: The shift whose weights are not from the pool.
LATENT = "latent"


class DiversityConfig(PrefixConfig):
    """The sizes of a prompt, the number of pretraining tasks, and the noise."""

    dim: int = Field(8, ge=1, description="D, dimension of the inputs")
    examples: int = Field(16, ge=1, description="N, number of examples in the context")
    tasks: int = Field(
        1024,
        ge=0,
        description="M, number of weight vectors in the pool; 0: a new one for every prompt",
    )
    # Below it, the ridge answer to fewer examples than dimensions loses its digits.
    noise: float = Field(0.5, ge=1e-3, description="σ, standard deviation of the noise on y")
    noisy_targets: bool = Field(
        True,
        description="whether training targets have noise too; evaluation targets never have noise",
    )


class TaskDiversity(PrefixTask[DiversityConfig]):
    """Predict w·x_{k+1} from k noisy examples, where w is one of M vectors (Raventós et al. 2023).

    x ~ N(0, I), y = w·x + σN(0, 1). The M vectors are N(0, I), drawn once from `task_seed`; the
    first M of more are the same M. Tokens are (0, x) and (y, 0). The shift `latent` has new w.
    """

    name = "task-diversity"
    version = 1
    Config = DiversityConfig
    separate_values = True
    training_only = frozenset({"noisy_targets"})
    replica_args = frozenset({"tasks", "noise"})
    recipes = {"smoke": SMOKE, "quick": QUICK, "paper": PAPER}
    unrounded = frozenset({"w", "noise"})
    floor_kind: FloorKind = "bayes"
    floor_summary = (
        "The posterior mean: over the M vectors of the pool (dMMSE), or of w ~ N(0, I), which is "
        "ridge regression with λ = σ², for fresh weights and under the shift `latent`."
    )

    @property
    def shifts(self) -> dict[str, Shift]:
        """Weights that are not from the pool."""
        if not self.config.tasks:
            return {}
        return {LATENT: Shift("new weights w ~ N(0, I), not from the pool", change=_fresh_weights)}

    @cached_property
    def pool(self) -> Tensor:
        """The weight vectors, (M, D), float64."""
        shape = (self.config.tasks, self.config.dim)
        numbers = philox("task diversity pool", self.config.task_seed).standard_normal(shape)
        return torch.from_numpy(numbers)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The pool."""
        return {"pool": self.pool} if self.config.tasks else {}

    @property
    def has_fresh_weights(self) -> bool:
        """Whether weights are N(0, I) in evaluation, and not of the pool."""
        return self.shift == LATENT or not self.config.tasks

    def draw(self, random: Random) -> Draws:
        """x (rows, N+1, D), w (rows, D, 1), and the noise on the values, (rows, N, 1).

        In training also that on the targets, (rows, N+1, 1), where they have noise.
        """
        c = self.config
        x = random.normal("x", c.examples + 1, c.dim)
        if c.tasks:
            chosen = random.integers("task", c.tasks)
            # In training in the dtype of x; in evaluation in float64, as the pool is.
            w = self.pool.to(x)[chosen].unsqueeze(2)
        else:
            w = random.normal("w", c.dim, 1)
        draws = {"x": x, "w": w, "noise": random.normal("noise", c.examples, 1)}
        if random.training and c.noisy_targets:
            last = random.normal("target noise", 1, 1)
            # A value is in the prompt with the same noise as in the target.
            draws["target_noise"] = torch.cat([draws["noise"], last], dim=1)
        return draws

    def arrange(self, draws: Draws) -> Batch:
        """Inputs and values in turn."""
        x, w, noise = draws["x"], draws["w"], self.config.noise
        clean = x @ w
        target = clean + noise * draws["target_noise"] if "target_noise" in draws else clean
        prompt = self.prompt_of(x, clean[:, :-1] + noise * draws["noise"])
        return Batch(prompt, target, {"w": w})

    def answer(self, batch: Batch) -> Tensor:
        """w·x of every rounded input, without noise, exact products."""
        return exact_matmul(batch.prompt.inputs(), batch.truth["w"])

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """The errors of `PrefixTask`, and the distances from both Bayes predictors.

        A distance is the squared difference of predictions divided by D, its mean over k = 0…N:
        ridge_distance and, for a pool, dmmse_distance, (B,).
        """
        x, y = batch.prompt.inputs().double(), batch.prompt.y.double()
        values = super().metrics(prediction, batch)

        def distance(other: Tensor) -> Tensor:
            return (prediction - other).square().mean(dim=(1, 2)) / self.config.dim

        values["ridge_distance"] = distance(ridge_means(x, y, self.config.noise))
        if self.config.tasks:
            values["dmmse_distance"] = distance(self._dmmse(x, y))
        return values

    def reference(self, batch: Batch) -> Tensor:
        """The posterior mean of this evaluation's weights."""
        prompt = batch.prompt
        if not self.has_fresh_weights:
            return self._dmmse(prompt.inputs().double(), prompt.y.double())
        # From exact arithmetic: no part of a floor comes from LAPACK.
        penalty = prompt.y.new_full((len(prompt.y),), self.config.noise, dtype=torch.float64)
        inputs = prompt.inputs()
        answers = [
            exact_least_squares(
                prompt.x[:, :k], prompt.y[:, :k], query=inputs[:, k : k + 1], ridge=penalty.square()
            )
            for k in range(inputs.shape[1])
        ]
        return torch.cat(answers, dim=1)

    def _dmmse(self, x: Tensor, y: Tensor) -> Tensor:
        return discrete_mmse(x, y, self.pool, self.config.noise)


def _fresh_weights(draws: Draws, random: Random) -> Draws:
    return {**draws, "w": random.normal("latent", *draws["w"].shape[1:])}
