"""The construction `ridge-gd`: gradient descent on the ridge objective by LSA and by ELSA.

Every module computes w ← w − η[XᵀXw − Xᵀy + λw] exactly (elsa, eqs. 35–36), and the output module
uᵀw. With s columns, [rows, columns] of HᵀH are taken and moved by W₁ and W₂ (Property 1).
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
    """The number of steps, and how they are laid out."""

    steps: int = Field(50, ge=0, description="T, gradient steps")
    shared: bool = Field(True, description="one module for all steps, or a copy for each")


class RidgeGD(Construction):
    """LSA on the designed input: three heads a module (elsa, eqs. 37–55)."""

    summary = "gradient descent on the ridge objective, T steps of the prompt's size (eqs. 37–55)"
    Config: ClassVar[type[Config]] = RidgeGDConfig

    def build(
        self, signature: Signature, args: Any, task: Any
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Configuration and state; raises UsageError without the shapes of x."""
        layout = self.layout(signature, "designed")
        module, output = [designed_step(layout)], [designed_output(layout)]
        return self.assemble(args, "designed", module, output, biases=False)

    def layout(self, signature: Signature, form: str) -> Layout:
        """The input matrix for the signature's N and D."""
        if "x" not in signature.shapes:
            raise UsageError("construction ridge-gd: the task does not state the shape of x")
        return LAYOUTS[form](*signature.shapes["x"])

    def assemble(
        self, args: RidgeGDConfig, form: str, module: list[Block], output: list[Block], biases: bool
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The configuration, and the state dict of `steps` such modules and the output module."""
        heads = max(len(block) for block in [*module, *output])
        config = {
            "form": form,
            "layers": args.steps,
            "heads": heads,
            "blocks": len(module),
            "shared": args.shared,
            "mlp": False,
        }
        distinct = min(1, args.steps) if args.shared else args.steps
        places = {f"stack.steps.{t}": module for t in range(distinct)} | {"output": output}
        state = {}
        for place, blocks in places.items():
            for j, block in enumerate(blocks):
                weights, bias = _stacked(block, heads)
                state[f"{place}.blocks.{j}.weights"] = weights
                if biases:
                    state[f"{place}.blocks.{j}.biases"] = bias
        return config, state


class ExtendedRidgeGDConfig(RidgeGDConfig):
    """The form of the input too, since ELSA includes LSA."""

    form: Literal["designed", "enumerated"] = Field(
        "enumerated", description="eq. 56, or eq. 37, where the first block is LSA's"
    )


class ExtendedRidgeGD(RidgeGD):
    """ELSA on the enumerated input, two blocks of four heads a module (elsa, eqs. 56–86)."""

    summary = "gradient descent on the ridge objective, T steps of the prompt's size (eqs. 56–86)"
    Config = ExtendedRidgeGDConfig

    def build(
        self, signature: Signature, args: Any, task: Any
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Configuration and state; raises UsageError without the shapes of x."""
        layout = self.layout(signature, args.form)
        passing = [identity(layout.rows, layout.columns, torch.float64)]
        if args.form == "designed":
            module, output = [designed_step(layout), passing], [designed_output(layout), passing]
        else:
            module = [enumerated_gradient(layout), enumerated_update(layout)]
            output = [enumerated_output(layout), passing]
        return self.assemble(args, args.form, module, output, biases=True)


def designed_step(layout: Layout) -> Block:
    """−ηΔw in the last column of P from H of eq. 37 (eqs. 42–48)."""
    b, s = layout.blocks, layout.columns
    keep_x = _move(s, b["x"], 0)
    return [
        _head(layout, _move(s, b["y"], 0), _move(s, b["one"], s - 1), keep_x),
        _head(layout, _move(s, b["x"], 0), _move(s, b["w"], s - 1), -keep_x),
        _head(layout, _move(s, b["ridge"], 0), _move(s, b["w"], s - 1), -_move(s, b["ridge"], 0)),
    ]


def designed_output(layout: Layout) -> Block:
    """uᵀw in the lower right cell (eqs. 51–54)."""
    b, s = layout.blocks, layout.columns
    moved = (_move(s, b[name], s - 1) for name in ("query", "w", "one"))
    return [_head(layout, *moved)]


def enumerated_gradient(layout: Layout) -> Block:
    """P₁ = [0, −ηI, 0, 0, Δw] from H of eq. 56 (eqs. 61–74)."""
    b, s, d = layout.blocks, layout.columns, layout.rows
    n = b["x"][1]
    none = torch.zeros(s, s, dtype=torch.float64)
    to_w = _move(s, b["w"], s - 1)
    start = _bias(layout, 0, torch.eye(d))
    end = _bias(layout, s - d, -torch.eye(d))
    return [
        _head(layout, _move(s, b["x"], 0), to_w, _move(s, b["x"], 0)),
        _head(layout, _move(s, b["ridge"], 0), to_w, none, B3=start),
        _head(layout, _move(s, b["y"], s - n), none, _move(s, b["x"], s - n), B2=end),
        _head(layout, _move(s, b["step"], 0), _move(s, b["step"], b["step"][0]), none, B3=-start),
    ]


def enumerated_update(layout: Layout) -> Block:
    """−ηΔw in the last column from P₁ (eqs. 75–77)."""
    b, s = layout.blocks, layout.columns
    none = torch.zeros(s, s, dtype=torch.float64)
    start = _bias(layout, 0, torch.eye(layout.rows))
    return [_head(layout, _move(s, b["step"], 0), _move(s, b["w"], s - 1), none, B3=start)]


def enumerated_output(layout: Layout) -> Block:
    """uᵀw in the first cell of column z (eqs. 80–83)."""
    b, s = layout.blocks, layout.columns
    none = torch.zeros(s, s, dtype=torch.float64)
    to_z = _move(s, b["w"], b["z"][0])
    return [_head(layout, _move(s, b["query"], 0), to_z, none, B3=_bias(layout, 0, torch.eye(1)))]


def _move(s: int, columns: Range, to: int) -> Tensor:
    return move(s, columns, to - columns[0], torch.float64)


def _bias(layout: Layout, column: int, block: Tensor) -> Tensor:
    """Zeros but for `block`, whose first row is the first, from that column on."""
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
    zero = torch.zeros(layout.rows, layout.columns, dtype=torch.float64)
    return (W1, zero), (W2, zero if B2 is None else B2), (W3, zero if B3 is None else B3)


def _stacked(block: Block, heads: int) -> tuple[Tensor, Tensor]:
    """Weights (3, heads, s, s) and biases (3, heads, m, s); heads that are not used are zero."""
    weights = torch.stack([torch.stack([W for W, _ in head]) for head in block], dim=1)
    biases = torch.stack([torch.stack([B for _, B in head]) for head in block], dim=1)
    missing = heads - len(block)
    padding = (0, 0, 0, 0, 0, missing)
    pad = torch.nn.functional.pad
    return pad(weights, padding), pad(biases, padding)
