"""The task `quadratic`: least squares in the squares of the inputs solves it."""

from __future__ import annotations

import math

import torch
from flint import arb, arb_mat
from torch import Tensor

from iclbench import Batch, Draws, FloorKind, Random, Shift, evaluate_exactly

from .base import FunctionTask, ScaledConfig, scale_shifts


class Quadratic(FunctionTask[ScaledConfig]):
    """y = Σ wᵢxᵢ²/√3 with w ~ N(0, scale²I): E y² = D at scale 1, since E x⁴ = 3."""

    name = "quadratic"
    version = 1
    Config = ScaledConfig
    replica_args = FunctionTask.replica_args | {"scale"}
    floor_summary = (
        "Least squares in the squares of the inputs on the rounded prompt, solved exactly: the "
        "minimum-norm solution for k < D. With N < D, it is the Bayes predictor: the posterior "
        "mean."
    )
    # The squares of ±1 are constant.
    undefined_shifts = frozenset({"signs"})

    @property
    def floor_kind(self) -> FloorKind:
        """`exact` if all N examples determine w."""
        return "exact" if self.config.examples >= self.config.dim else "bayes"

    @property
    def shifts(self) -> dict[str, Shift]:
        """Without half a subspace where the squares of its inputs don't span all D."""
        shifts, half = super().shifts, self.config.dim // 2
        if half * (half + 1) // 2 < self.config.dim:
            shifts.pop("half-subspace", None)
        return shifts

    def class_shifts(self) -> dict[str, Shift]:
        """Other scales of the values."""
        return scale_shifts(self.config)

    def draw_function(self, random: Random) -> Draws:
        """w (rows, D, 1)."""
        return {"w": random.normal("w", self.config.dim, 1)}

    def values(self, x: Tensor, draws: Draws) -> Tensor:
        """Σ wᵢxᵢ²/√3, (B, N+1, 1)."""
        return self.config.scale / math.sqrt(3) * (x.square() @ draws["w"])

    def truth(self, draws: Draws) -> dict[str, Tensor]:
        """The weights at scale 1."""
        return {"w": draws["w"]}

    def answer(self, batch: Batch) -> Tensor:
        """Σ wᵢxᵢ²/√3 of every rounded input, rounded once."""

        def exactly(x: arb_mat, w: arb_mat) -> arb_mat:
            return _squares(x) * w * (arb(self.config.scale) / arb(3).sqrt())

        return evaluate_exactly(exactly, batch.prompt.inputs(), batch.truth["w"])

    def reference(self, batch: Batch) -> Tensor:
        """The posterior mean: the same formula as the exact answer."""
        return self.exact_answer(batch)

    def exact_answer(self, batch: Batch) -> Tensor:
        """Least squares in the squares, on each rounded prefix."""
        prompt, inputs = batch.prompt, batch.prompt.inputs()
        # Without noise the posterior mean has the least norm, whatever the scale.
        answers = [torch.zeros(len(inputs), 1, 1, dtype=torch.float64)]
        for k in range(1, inputs.shape[1]):
            fields = (inputs[:, :k], prompt.y[:, :k], inputs[:, k : k + 1])
            answers.append(evaluate_exactly(_fitted, *fields))
        return torch.cat(answers, dim=1)


def _squares(matrix: arb_mat) -> arb_mat:
    """The squares of the entries."""
    return arb_mat([[entry * entry for entry in row] for row in matrix.table()])


def _fitted(x: arb_mat, y: arb_mat, query: arb_mat) -> arb_mat:
    """The value at the query, by the smaller of the two Gram matrices of the squares."""
    features = _squares(x)
    transposed = features.transpose()
    if features.nrows() < features.ncols():
        w = transposed * (features * transposed).solve(y)
    else:
        w = (transposed * features).solve(transposed * y)
    return _squares(query) * w
