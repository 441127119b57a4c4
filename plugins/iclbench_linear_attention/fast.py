"""LSA as it is trained: fewer products, one row of the output, several replicas at once.

Everything here is equal to the paper's modules except for rounding. With replicas, H is
(R, B, m, n) and weights are (R, 3, heads, n, n).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from iclbench import TrainingContext, training_form

from .operators import attend


class FastLSA(nn.Module):
    """LSA at some rows of H, None for all, as Σ_k ((H(W₃W₁ᵀ))Hᵀ H)W₂: (..., m, n) → (..., r, n).

    Two products with weights instead of three, for those rows only, and the heads are rows of the
    products between them.
    """

    def __init__(self, layer: Any, rows: slice | None) -> None:
        super().__init__()
        self.layer, self.rows = layer, slice(None) if rows is None else rows

    def forward(self, H: Tensor) -> Tensor:
        """Map (..., m, n) to (..., r, n)."""
        first, second, third = self.layer.weights.unbind(-4)
        replicas, (heads, n, _) = second.shape[:-3], second.shape[-3:]
        lead, m = H.shape[:-2], H.shape[-2]
        count = len(range(*self.rows.indices(m)))
        inner = (third @ first.mT).transpose(-3, -2).reshape(*replicas, n, heads * n)
        # Rows of all prompts in one matrix: under vmap a product of few rows copies its weights.
        asked = H[..., self.rows, :].reshape(*replicas, -1, n)
        left = (asked @ inner).reshape(*lead, count * heads, n)
        if self.layer.causal:
            seen = H.new_ones(m, m).tril()[self.rows]
            mixed = ((left @ H.mT) * seen.repeat_interleave(heads, dim=0)) @ H
        elif left.shape[-2] == 1:
            # Sums, since products with one row per prompt, and their gradients, are slow.
            mixed = ((left * H).sum(dim=-1, keepdim=True) * H).sum(dim=-2)
        else:
            mixed = attend(left, H, H)
        outer = second.reshape(*replicas, heads * n, n)
        summed: Tensor = mixed.reshape(*replicas, -1, heads * n) @ outer
        return summed.reshape(*lead, count, n)


class FastStep(nn.Module):
    """A step with the training forms of its blocks."""

    def __init__(self, step: Any, context: TrainingContext) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_form(block, context) for block in step.blocks)
        self.mlp = step.mlp

    def forward(self, H: Tensor) -> Tensor:
        """Map (..., m, n) to (..., m, n)."""
        P = H
        for block in self.blocks:
            P = block(P)
        H = H + P
        return H if self.mlp is None else H + self.mlp(H)


class OutputCell(nn.Module):
    """One cell of a step's result, (..., m, n) → (..., 1, 1), by its row alone."""

    def __init__(self, step: Any, cell: tuple[int, int], context: TrainingContext) -> None:
        super().__init__()
        row, column = cell
        self.row, self.columns = slice(row, row + 1), slice(column, column + 1)
        *before, last = step.blocks
        self.before = nn.ModuleList(_form(block, context) for block in before)
        last_row = training_form(last, replace(context, positions=self.row))
        self.last = _form(last, context) if last_row is None else last_row
        self.gives_row = last_row is not None
        self.mlp = step.mlp

    def forward(self, H: Tensor) -> Tensor:
        """Map (..., m, n) to (..., 1, 1)."""
        P = H
        for block in self.before:
            P = block(P)
        P = self.last(P) if self.gives_row else self.last(P)[..., self.row, :]
        H = H[..., self.row, :] + P
        return (H if self.mlp is None else H + self.mlp(H))[..., self.columns]


class FastMatrixModel(nn.Module):
    """A `MatrixModel` with the training forms of its steps, and of the output only one cell."""

    def __init__(self, model: Any, context: TrainingContext) -> None:
        super().__init__()
        self.input, stack, output = model.input, model.stack, model.output
        self.depth = stack.depth
        self.steps = nn.ModuleList(FastStep(step, context) for step in stack.steps)
        self.output = OutputCell(output, model.layout.output, context)

    def forward(self, prompt: Any) -> Tensor:
        """Return the prediction at the query, (..., B, 1, 1)."""
        H = self.input(prompt)
        for t in range(self.depth):
            H = self.steps[t % len(self.steps)](H)
        answer: Tensor = self.output(H)
        return answer


def takes_replicas(step: Any, context: TrainingContext) -> bool:
    """Whether a step's training form also computes leading replicas."""
    return step.mlp is None and all(training_form(b, context) is not None for b in step.blocks)


def _form(block: nn.Module, context: TrainingContext) -> nn.Module:
    form = training_form(block, context)
    assert form is not None
    return form
