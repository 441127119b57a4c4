"""The architecture `gd-transformer`, and its construction from a task's own embeddings."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from iclbench import Architecture, Config, Construction, Signature, UsageError, added_later

from .free_form import FreeForm
from .gd_form import GDForm, Projection
from .kernels import DEGREE, Kernel
from .text_architecture import build_text, text_refusal
from .text_form import Covariates


class GDTransformerConfig(Config):
    """Which form, how many blocks, which kernel."""

    form: Literal["gd", "free"] = Field(
        "gd", description="gradient descent's parameters alone, or all attention matrices free"
    )
    blocks: int = Field(1, ge=1, description="K, attention blocks, steps of gradient descent")
    kernel: Kernel = Field("rbf", description="κ of self-attention")
    heads: int = Field(1, ge=1, description="form=gd: kernels κ(Λ_m x, Λ_m x') that are added up")
    embedding: int = Field(5, ge=1, description="d', width of f and of the class embeddings")
    scale: float | None = Field(
        None,
        gt=0,
        description="factor in the kernel: form=gd, on x at first, null: d^−½; form=free, on "
        "tokens, null: 1, but D^−½ for several blocks of an unbounded kernel",
    )
    erase: float | None = Field(
        None, gt=0, description="form=gd: λ of head 2, which erases E; null: E is overwritten"
    )
    degree: int = added_later(DEGREE, ge=1, description="of the polynomial kernel")
    bias: bool = added_later(False, description="form=gd: f(x) = Aψ(x) + b, with steps of b too")
    normalize: bool = added_later(False, description="covariates divided by their norms")
    projection: Projection = added_later(
        "full", description="form=gd: P_m as matrices, or their diagonals alone"
    )
    feed_forward: bool = added_later(
        False, description="target token: f + mlp(norm(f)) of the query before the answer"
    )
    covariates: Covariates = added_later(
        "random", description="target token: what the learned positions start from"
    )


class FunctionalGDConfig(Config):
    """The given values."""

    blocks: int = Field(1, ge=1, description="K, steps")
    kernel: Kernel = Field("rbf", description="κ")
    step: float = Field(1.0, description="α of every step")
    scale: float = Field(1.0, gt=0, description="factor on x in the kernel")
    degree: int = added_later(DEGREE, ge=1, description="of the polynomial kernel")


class GivenEmbeddings(Construction):
    """Functional gradient descent with the true W_e of the task's parameters."""

    summary = "K steps of functional gradient descent with the task's own W_e"
    Config = FunctionalGDConfig

    def build(
        self, signature: Signature, args: Any, task: Any
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Configuration and state; raises UsageError where the task has no embeddings."""
        if "embedding" not in task.parameters:
            raise UsageError(f"construction functional-gd: {task.name} has no embeddings")
        embedding = task.parameters["embedding"].double()
        width = embedding.shape[1]
        config = {
            "form": "gd",
            "blocks": args.blocks,
            "kernel": args.kernel,
            "heads": 1,
            "embedding": width,
            "degree": args.degree,
            "projection": "full",
        }
        state = {
            "embedding": embedding,
            "step": torch.full((args.blocks,), args.step, dtype=torch.float64),
            "log_scale": torch.tensor(args.scale, dtype=torch.float64).log(),
            "project": torch.eye(width, dtype=torch.float64)[None],
        }
        return config, state


def _class_refusal(config: GDTransformerConfig) -> str | None:
    """Why a configuration does not fit a task that asks for classes, or None."""
    if config.feed_forward or config.covariates != "random":
        return "feed_forward and covariates are for tasks that ask for a token"
    if config.form == "free":
        for name in ("erase", "bias", "projection"):
            if getattr(config, name) != type(config).model_fields[name].default:
                return f"form=free has no {name}"
        if config.heads > 1:
            return "form=free has the paper's heads; leave heads out"
    return None


class GDTransformer(Architecture):
    """Self-attention over covariates, cross-attention to the class embeddings (categorical, 3)."""

    name = "gd-transformer"
    Config = GDTransformerConfig
    constructions = {"functional-gd": GivenEmbeddings()}

    def supports(self, signature: Signature, config: GDTransformerConfig) -> str | None:
        """It needs x, y and query of known shapes, and classes; or ids, and to answer tokens."""
        if signature.target == "token":
            return text_refusal(config)
        missing = [name for name in ("x", "y", "query") if name not in signature.shapes]
        if missing:
            return f"it needs the shape of {', '.join(missing)}, which the task does not state"
        if signature.target != "class":
            return f"it answers class, not {signature.target}"
        return _class_refusal(config)

    def build(self, signature: Signature, config: GDTransformerConfig) -> nn.Module:
        """A model for the signature's classes and inputs."""
        if signature.target == "token":
            return build_text(signature, config, exact=True)
        c, dim = config, signature.shapes["x"][1]
        if c.form == "free":
            return FreeForm(
                classes=signature.classes,
                dim=dim,
                width=c.embedding,
                blocks=c.blocks,
                kernel=c.kernel,
                degree=c.degree,
                normalize=c.normalize,
                scale=c.scale,
            )
        return GDForm(
            classes=signature.classes,
            dim=dim,
            width=c.embedding,
            blocks=c.blocks,
            heads=c.heads,
            kernel=c.kernel,
            scale=1.0 / math.sqrt(dim) if c.scale is None else c.scale,
            erase=c.erase,
            degree=c.degree,
            bias=c.bias,
            normalize=c.normalize,
            projection=c.projection,
        )


class CausalGDTransformer(GDTransformer):
    """The form for text with all prefixes in one pass, in every block: no gradient descent."""

    name = "gd-transformer-causal"
    constructions = {}

    def supports(self, signature: Signature, config: GDTransformerConfig) -> str | None:
        """It needs a task that asks for tokens."""
        if signature.target != "token":
            return f"it answers token, not {signature.target}"
        return text_refusal(config)

    def build(self, signature: Signature, config: GDTransformerConfig) -> nn.Module:
        """A model for the signature's vocabulary and length."""
        return build_text(signature, config, exact=False)
