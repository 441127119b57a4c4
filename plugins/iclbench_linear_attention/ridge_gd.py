"""The construction `ridge-gd`: gradient descent on the ridge objective by LSA and by ELSA.

Every module computes w ← w − η[XᵀXw − Xᵀy + λw] exactly (Hagiwara, eqs. 35–36). The output module
computes uᵀw for the query u. In each head, W₁ selects and moves rows of HᵀH, and W₂ its columns
(Property 1).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Config, Construction, Signature, UsageError

from .forms import LAYOUTS, Layout
from .operators import Parameters, Range, move
from .properties import identity

Block = list[Parameters]


class RidgeGDConfig(Config):
    """The number of steps, and whether their parameters are shared."""

    steps: int = Field(50, ge=0, description="T, the number of gradient steps")
    shared: bool = Field(
        True, description="whether all steps share one module; otherwise, one copy per step"
    )


class RidgeGD(Construction):
    """LSA on the designed input: three heads per module (Hagiwara, eqs. 37–55)."""

    summary = (
        "T steps of gradient descent on the ridge objective, with the prompt's η (Hagiwara 2025, "
        "eqs. 37–55)"
    )
    Config: ClassVar[type[Config]] = RidgeGDConfig

    def build(
        self, signature: Signature, args: Any, task: Any
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return configuration and state; raises UsageError if the shape of x is unknown."""
        layout = self.layout(signature, "designed")
        module, output = [designed_step(layout)], [designed_output(layout)]
        return self.assemble(args, "designed", module, output, biases=False)

    def layout(self, signature: Signature, form: str) -> Layout:
        """Return the input matrix's layout for the signature's N and D."""
        if "x" not in signature.shapes:
            raise UsageError("construction ridge-gd: the task does not state the shape of x")
        return LAYOUTS[form](*signature.shapes["x"])

    def assemble(
        self, args: RidgeGDConfig, form: str, module: list[Block], output: list[Block], biases: bool
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the configuration and state dict of `args.steps` modules and an output module."""
        # All blocks of a model have as many heads as the largest; the others get heads of zeros.
        heads = max(len(block) for block in [*module, *output])
        config = {
            "form": form,
            "layers": args.steps,
            "heads": heads,
            "blocks": len(module),
            "shared": args.shared,
            "mlp": False,
        }
        # Zero steps leave no module, shared or not.
        distinct = min(1, args.steps) if args.shared else args.steps
        modules = {f"stack.steps.{t}": module for t in range(distinct)} | {"output": output}
        state = {}
        for name, blocks in modules.items():
            for j, block in enumerate(blocks):
                weights, bias = _stacked(block, heads)
                state[f"{name}.blocks.{j}.weights"] = weights
                if biases:
                    state[f"{name}.blocks.{j}.biases"] = bias
        return config, state


class ExtendedRidgeGDConfig(RidgeGDConfig):
    """As for LSA, and the form of the input: ELSA includes LSA, so it can use either."""

    form: Literal["designed", "enumerated"] = Field(
        "enumerated",
        description="form of the input matrix: enumerated (eq. 56 of the paper), or designed (eq. "
        "37, with the block of LSA)",
    )


class ExtendedRidgeGD(RidgeGD):
    """ELSA on the enumerated input: two blocks of four heads per module (Hagiwara, eqs. 56–86)."""

    summary = (
        "T steps of gradient descent on the ridge objective, with the prompt's η (Hagiwara 2025, "
        "eqs. 56–86)"
    )
    Config = ExtendedRidgeGDConfig

    def build(
        self, signature: Signature, args: Any, task: Any
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return configuration and state; raises UsageError if the shape of x is unknown."""
        layout = self.layout(signature, args.form)
        # Modules have two blocks; where one suffices, the second returns its input (Property 3).
        unchanged = [identity(layout.rows, layout.columns, torch.float64)]
        if args.form == "designed":
            module = [designed_step(layout), unchanged]
            output = [designed_output(layout), unchanged]
        else:
            module = [enumerated_gradient(layout), enumerated_update(layout)]
            output = [enumerated_output(layout), unchanged]
        return self.assemble(args, args.form, module, output, biases=True)


def designed_step(layout: Layout) -> Block:
    """Return the heads that write −ηΔw to the last column, for H of eq. 37 (eqs. 42–48)."""
    b, s = layout.blocks, layout.columns
    # W₃ carries each head's sign; the heads then sum to −ηΔw (eqs. 45–49).
    keep_x = _move(s, b["x"], 0)
    return [
        # √ηXᵀ · √ηy
        _head(layout, _move(s, b["y"], 0), _move(s, b["one"], s - 1), keep_x),
        # −√ηXᵀ · √ηXw
        _head(layout, _move(s, b["x"], 0), _move(s, b["w"], s - 1), -keep_x),
        # −√(ηλ)I · √(ηλ)w
        _head(layout, _move(s, b["ridge"], 0), _move(s, b["w"], s - 1), -_move(s, b["ridge"], 0)),
    ]


def designed_output(layout: Layout) -> Block:
    """Return the head that writes uᵀw to the lower right cell (eqs. 51–54)."""
    b, s = layout.blocks, layout.columns
    # HW₃ is 0 except for the 1 in the last row, so it puts uᵀw there (eqs. 52–53).
    W1, W2, W3 = (_move(s, b[name], s - 1) for name in ("query", "w", "one"))
    return [_head(layout, W1, W2, W3)]


def enumerated_gradient(layout: Layout) -> Block:
    """Return the heads that compute P₁ = [0, −ηI, 0, 0, Δw] from H of eq. 56 (eqs. 61–74)."""
    b, s, d = layout.blocks, layout.columns, layout.rows
    n = b["x"][1]
    zero = torch.zeros(s, s, dtype=torch.float64)
    keep_w = _move(s, b["w"], s - 1)
    first_columns = _bias(layout, 0, torch.eye(d))
    last_columns = _bias(layout, s - d, -torch.eye(d))
    # The second block does not see H, so the fourth head passes −ηI on to it.
    keep_step = _move(s, b["step"], b["step"][0])
    return [
        # XᵀXw (eqs. 61–64)
        _head(layout, _move(s, b["x"], 0), keep_w, _move(s, b["x"], 0)),
        # λw: W₁ selects λI, and a bias, which LSA lacks, is the factor I in front (eqs. 65–67).
        _head(layout, _move(s, b["ridge"], 0), keep_w, zero, B3=first_columns),
        # −Xᵀy: of −XᵀY₀ only the last column is not 0 (eqs. 68–71).
        _head(layout, _move(s, b["y"], s - n), zero, _move(s, b["x"], s - n), B2=last_columns),
        # −ηI (eqs. 72–73)
        _head(layout, _move(s, b["step"], 0), keep_step, zero, B3=-first_columns),
    ]


def enumerated_update(layout: Layout) -> Block:
    """Return the head that writes −ηΔw to the last column from P₁ (eqs. 75–77)."""
    b, s = layout.blocks, layout.columns
    zero = torch.zeros(s, s, dtype=torch.float64)
    # (−ηI)ᵀΔw needs no further factor, so B₃ is the identity (eq. 76).
    identity_bias = _bias(layout, 0, torch.eye(layout.rows))
    return [_head(layout, _move(s, b["step"], 0), _move(s, b["w"], s - 1), zero, B3=identity_bias)]


def enumerated_output(layout: Layout) -> Block:
    """Return the head that writes uᵀw to the first cell of column z (eqs. 80–83)."""
    b, s = layout.blocks, layout.columns
    zero = torch.zeros(s, s, dtype=torch.float64)
    # A column of its own for the answer leaves w_T in the last column (eq. 86).
    w_to_z = _move(s, b["w"], b["z"][0])
    first_cell = _bias(layout, 0, torch.eye(1))
    return [_head(layout, _move(s, b["query"], 0), w_to_z, zero, B3=first_cell)]


def _move(s: int, columns: Range, to: int) -> Tensor:
    """Return the matrix (s, s) that moves `columns` so that they start at `to`."""
    return move(s, columns, to - columns[0], torch.float64)


def _bias(layout: Layout, column: int, block: Tensor) -> Tensor:
    """Return zeros (m, s) with the upper left corner of `block` at [0, column]."""
    B = torch.zeros(layout.rows, layout.columns, dtype=torch.float64)
    B[: block.shape[0], column : column + block.shape[1]] = block
    return B


def _head(
    layout: Layout,
    W1: Tensor,
    W2: Tensor,
    W3: Tensor,
    *,
    B2: Tensor | None = None,
    B3: Tensor | None = None,
) -> Parameters:
    """Return one head's pairs (W, B); B₁ is 0, and so are B₂ and B₃ unless given."""
    zero = torch.zeros(layout.rows, layout.columns, dtype=torch.float64)
    return (W1, zero), (W2, zero if B2 is None else B2), (W3, zero if B3 is None else B3)


def _stacked(block: Block, heads: int) -> tuple[Tensor, Tensor]:
    """Return weights (3, heads, s, s) and biases (3, heads, m, s); unused heads are 0."""
    weights = torch.stack([torch.stack([W for W, _ in head]) for head in block], dim=1)
    biases = torch.stack([torch.stack([B for _, B in head]) for head in block], dim=1)
    unused_heads = (0, 0, 0, 0, 0, heads - len(block))
    pad = torch.nn.functional.pad
    return pad(weights, unused_heads), pad(biases, unused_heads)
