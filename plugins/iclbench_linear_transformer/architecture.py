"""The architecture `linear-transformer`."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import nn

from iclbench import Architecture, Config, Signature, added_later

from .constructions import Chebyshev, Richardson
from .modules import BlockLayer, BlockModel, FullLayer, FullModel, SquareBlockLayer
from .regression import RegressionModel

#: Targets that the block form answers on regression prompts.
REGRESSION = ("query", "weights")


class LinearTransformerConfig(Config):
    """Parametrization, depth and heads."""

    form: Literal["block", "full"] = Field(
        "block",
        description="block: P and Q consist of blocks p·I and p·1, for any N; full: arbitrary "
        "matrices, for one N",
    )
    layers: int = Field(4, ge=1, description="L, number of layers")
    heads: int = Field(1, ge=1, description="number of terms (eⱼᵀQeᵢ)Peⱼ per layer")
    embedding: int = Field(27, ge=1, description="form=full: width of the learned H")
    normalize: bool = Field(
        False,
        description="linear systems: divide A and b by ‖A‖_F/√N, so that their scale does not "
        "matter; regression: divide x and y by √N and multiply the answer by it",
    )
    init_std: float = Field(0.1, gt=0, description="standard deviation of initial P, Q and H")
    ones: bool = added_later(
        True, description="form=block: include blocks p·1 and set the query's h to 1, not 0"
    )
    homogeneous: bool = added_later(
        False,
        description="linear systems: divide b and x₀ by ‖b‖ and multiply the answer by it; "
        "regression: the same with y and its root mean square",
    )


class LinearTransformer(Architecture):
    """Layers Δeᵢ = Σ_{j≤N} (eⱼᵀQeᵢ) P eⱼ on tokens (aᵢ, bᵢ, hᵢ) and the query (x₀, 1, 1)."""

    name = "linear-transformer"
    Config = LinearTransformerConfig
    replica_args = frozenset({"init_std"})
    constructions = {"richardson": Richardson(), "chebyshev": Chebyshev()}

    def supports(self, signature: Signature, config: LinearTransformerConfig) -> str | None:
        """Accept linear systems (form=full: of one size) and, in the block form, regression."""
        default = type(config).model_fields["embedding"].default
        if config.form == "block" and config.embedding != default:
            return "form=block has no learned embedding"
        if signature.target in REGRESSION:
            return _supports_regression(signature, config)
        missing = {"a", "b", "x0", "size"} - set(getattr(signature.prompt, "_fields", ()))
        if missing:
            return f"it needs {', '.join(sorted(missing))}, which the task's prompts lack"
        if signature.target != "solution":
            return f"it answers solution, query or weights, not {signature.target}"
        return _supports_systems(signature, config)

    def build(self, signature: Signature, config: LinearTransformerConfig) -> nn.Module:
        """Return a model; in the block form, its parameters do not depend on the size N."""
        c = config
        if c.form == "block":
            # Without ones no weight connects vectors and scalars, so those parameters do not exist.
            layer = BlockLayer if c.ones else SquareBlockLayer
            regression = signature.target in REGRESSION
            # A system's token has the vectors a, h₁, h₂, h₃; an example's has x only.
            vectors = 1 if regression else 4
            blocks: list[nn.Module] = [layer(c.heads, c.init_std, vectors) for _ in range(c.layers)]
            if regression:
                weights = signature.target == "weights"
                dim = signature.shapes["x"][1]
                return RegressionModel(blocks, dim, c.normalize, c.homogeneous, weights)
            return BlockModel(blocks, c.normalize, c.homogeneous, c.ones)
        size = signature.output_width
        width = size + 1 + c.embedding
        # init_std is that of tokens of width 9; wider ones add up more terms.
        std = c.init_std * (9.0 / width) ** 0.5
        layers: list[nn.Module] = [FullLayer(c.heads, width, std) for _ in range(c.layers)]
        embedding = nn.Parameter(c.init_std * torch.randn(size, c.embedding))
        return FullModel(layers, c.normalize, c.homogeneous, embedding)


def _supports_systems(signature: Signature, config: LinearTransformerConfig) -> str | None:
    if config.form == "full" and signature.varies:
        return "form=full is built for one N, but the task has several; form=block takes any"
    if config.form == "full" and not config.ones:
        return "form=full has no ones; its matrices are arbitrary"
    return None


def _supports_regression(signature: Signature, config: LinearTransformerConfig) -> str | None:
    shapes = signature.shapes
    missing = [name for name in ("x", "y", "query") if name not in shapes]
    if missing:
        return f"it needs the shape of {', '.join(missing)}, which the task does not state"
    if shapes["y"][1] != 1:
        return "it predicts one value per query; y has several"
    unseen = set(getattr(signature.prompt, "_fields", ())) - {"tokens", "x", "y", "query"}
    if unseen:
        return f"it would ignore {', '.join(sorted(unseen))}"
    if config.form == "full":
        return "form=full is for linear systems; form=block takes regression too"
    return None


def multiply_adds(n: int, layers: int, heads: int = 1) -> int:
    """Multiply-adds of the block form on one system of n equations.

    Scores and sums over the context cost (n + 1)·n·(4n + 1) each; Q on n + 1 tokens and P on n
    cost 16n + 9 per token.
    """
    return layers * heads * (2 * (n + 1) * n * (4 * n + 1) + (2 * n + 1) * (16 * n + 9))
