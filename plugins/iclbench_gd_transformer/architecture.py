"""The architectures `gd-transformer` and `gd-transformer-causal`, and their exact weights."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from iclbench import (
    Architecture,
    Config,
    Construction,
    Signature,
    UsageError,
    added_later,
    torch_generator,
    training_batch,
)

from .config import GDTransformerConfig, class_refusal, text_refusal
from .free_form import FreeForm
from .gd_form import GDForm
from .kernels import DEGREE, Kernel, median_scale, require_degree
from .text_form import CausalText, ExactText

#: Contexts from which the construction takes its scale.
CONTEXTS = 256


class FunctionalGDConfig(Config):
    """Steps, step size and kernel of the construction."""

    blocks: int = Field(6, ge=1, description="K, number of blocks, each a gradient step")
    kernel: Kernel = Field("rbf", description="κ, the kernel of self-attention")
    # 2: iclbench sweep plugins/iclbench_gd_transformer/sweeps/defaults.toml (seeds 1000–1002).
    step: float = Field(2.0, gt=0, description="α, the step size of every block")
    scale: float | None = Field(
        None,
        gt=0,
        description="factor on x in the kernel; null: 1 / the median distance between two examples "
        "of training contexts",
    )
    degree: int = added_later(DEGREE, ge=1, le=100, description="degree, for kernel=polynomial")

    @model_validator(mode="after")
    def _degree_has_a_meaning(self) -> FunctionalGDConfig:
        require_degree(self.kernel, self.degree)
        return self


class GivenEmbeddings(Construction):
    """Functional gradient descent with the task's true class embeddings W_e."""

    summary = "K steps of functional gradient descent with the task's own class embeddings"
    Config = FunctionalGDConfig

    def build(
        self, signature: Signature, args: Any, task: Any
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return configuration and state; raises UsageError if the task has no embeddings."""
        if "embedding" not in task.parameters:
            raise UsageError(f"construction functional-gd: {task.name} has no embeddings")
        embedding = task.parameters["embedding"].double()
        scale = typical_scale(args.kernel, task) if args.scale is None else args.scale
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
            "log_scale": torch.tensor(scale, dtype=torch.float64).log(),
            # M = I (Appendix C): plain gradient descent.
            "project": torch.eye(width, dtype=torch.float64)[None],
        }
        return config, state


def typical_scale(kernel: Kernel, task: Any) -> float:
    """The median heuristic on contexts of the task, which all have one scale, to two digits."""
    prompt = training_batch(task, CONTEXTS, torch_generator("cpu", "functional-gd"), torch.float64)
    scale = float(median_scale(kernel, prompt.prompt.x).mean())
    # Rounded, so that the weights do not depend on a platform's last bits.
    return float(f"{scale:.2g}")


class GDTransformer(Architecture):
    """Self-attention over covariates, cross-attention to the class embeddings (Wang et al., 3)."""

    name = "gd-transformer"
    Config = GDTransformerConfig
    constructions = {"functional-gd": GivenEmbeddings()}
    search_args = {"blocks": (1, 2, 3, 4)}

    def supports(self, signature: Signature, config: GDTransformerConfig) -> str | None:
        """Accept tasks that ask for a class, with x, y and query of known shapes, or for tokens."""
        if signature.target == "token":
            return text_refusal(signature, config)
        missing = [name for name in ("x", "y", "query") if name not in signature.shapes]
        if missing:
            return f"it needs the shape of {', '.join(missing)}, which the task does not state"
        if signature.target != "class":
            return f"it answers class, not {signature.target}"
        return class_refusal(config)

    def build(self, signature: Signature, config: GDTransformerConfig) -> nn.Module:
        """Return a model for the signature's classes and inputs, or for its vocabulary."""
        if signature.target == "token":
            # With one block, the causal pass over all prefixes is exact.
            return (ExactText if config.blocks > 1 else CausalText)(signature, config)
        form = FreeForm if config.form == "free" else GDForm
        return form(signature.classes, signature.shapes["x"][1], config)


class CausalGDTransformer(GDTransformer):
    """The form for text, all prefixes in one pass; from two blocks on, not gradient descent."""

    name = "gd-transformer-causal"
    constructions = {}

    def supports(self, signature: Signature, config: GDTransformerConfig) -> str | None:
        """Accept tasks that ask for tokens."""
        if signature.target != "token":
            return f"it answers token, not {signature.target}"
        return text_refusal(signature, config)

    def build(self, signature: Signature, config: GDTransformerConfig) -> nn.Module:
        """Return a model for the signature's vocabulary and length."""
        return CausalText(signature, config)
