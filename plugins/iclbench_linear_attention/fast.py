"""Training forms of LSA: fewer products, one row of the output, several replicas at once.

They equal the paper's modules except for rounding. With leading replicas, H is (R, B, m, n) and
weights are (R, 3, heads, n, n).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from iclbench import TrainingContext, training_form

from .operators import attend


class FastLSA(nn.Module):
    """Rows of Σ_k ((H(W₃W₁ᵀ))Hᵀ H)W₂, or all rows for None: (..., m, n) → (..., r, n).

    This multiplies H by two weight matrices instead of three, and only for the rows needed. All
    heads share the products in between, as further rows.
    """

    def __init__(self, layer: Any, rows: slice | None) -> None:
        super().__init__()
        self.layer, self.rows = layer, slice(None) if rows is None else rows

    def forward(self, H: Tensor) -> Tensor:
        """Map (..., m, n) to (..., r, n)."""
        # Counted from the end, because leading replicas put R in front of the three matrices.
        first, second, third = self.layer.weights.unbind(-4)
        replicas, (heads, n, _) = second.shape[:-3], second.shape[-3:]
        lead, m = H.shape[:-2], H.shape[-2]
        count = len(range(*self.rows.indices(m)))
        # (n, heads · n): the W₃W₁ᵀ of all heads side by side, for a single product with H.
        inner = (third @ first.mT).transpose(-3, -2).reshape(*replicas, n, heads * n)
        # One matrix of all prompts' rows: under vmap, a product per prompt copies the weights.
        queries = H[..., self.rows, :].reshape(*replicas, -1, n)
        left = (queries @ inner).reshape(*lead, count * heads, n)
        if self.layer.causal:
            # The heads of a query row are consecutive rows of `left` and share its mask.
            mask = H.new_ones(m, m).tril()[self.rows].repeat_interleave(heads, dim=0)
            mixed = ((left @ H.mT) * mask) @ H
        elif left.shape[-2] == 1:
            # Matrix products with one row per prompt are slow, and so are their gradients.
            mixed = ((left * H).sum(dim=-1, keepdim=True) * H).sum(dim=-2)
        else:
            mixed = attend(left, H, H)
        # With the W₂ stacked over each other, this product also sums over the heads.
        outer = second.reshape(*replicas, heads * n, n)
        summed: Tensor = mixed.reshape(*replicas, -1, heads * n) @ outer
        return summed.reshape(*lead, count, n)


class FastStep(nn.Module):
    """A step whose blocks are replaced by their training forms."""

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
    """One cell of a step's result, (..., m, n) → (..., 1, 1), computed from its row only."""

    def __init__(self, step: Any, cell: tuple[int, int], context: TrainingContext) -> None:
        super().__init__()
        row, column = cell
        self.row, self.columns = slice(row, row + 1), slice(column, column + 1)
        # Only the last block may skip rows: the others feed all rows to the next block.
        *earlier_blocks, last_block = step.blocks
        self.earlier = nn.ModuleList(_form(block, context) for block in earlier_blocks)
        row_form = training_form(last_block, replace(context, positions=self.row))
        self.last = _form(last_block, context) if row_form is None else row_form
        self.last_returns_row = row_form is not None
        self.mlp = step.mlp

    def forward(self, H: Tensor) -> Tensor:
        """Map (..., m, n) to (..., 1, 1)."""
        P = H
        for block in self.earlier:
            P = block(P)
        P = self.last(P) if self.last_returns_row else self.last(P)[..., self.row, :]
        H = H[..., self.row, :] + P
        return (H if self.mlp is None else H + self.mlp(H))[..., self.columns]


class FastMatrixModel(nn.Module):
    """A `MatrixModel` with the training forms of its steps that computes one output cell."""

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
    """Whether a step's training form accepts leading replicas."""
    return step.mlp is None and all(training_form(b, context) is not None for b in step.blocks)


def _form(block: nn.Module, context: TrainingContext) -> nn.Module:
    form = training_form(block, context)
    assert form is not None
    return form
