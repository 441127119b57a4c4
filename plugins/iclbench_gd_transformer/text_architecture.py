"""What builds the GD transformer's form for text, and its causal variant."""

from __future__ import annotations

from typing import Any

from torch import nn

from iclbench import Signature

from .kernels import Kernel
from .text_form import CausalText, ExactText


def text_refusal(config: Any) -> str | None:
    """Why a configuration does not fit a task that asks for tokens, or None."""
    if config.form == "free":
        return "form=free is for classes; the free model of text is a transformer"
    if config.erase is not None:
        return "erase is for classes; on text E is overwritten"
    if config.kernel == "polynomial":
        return "kernel=polynomial is for classes"
    for name in ("degree", "bias", "normalize", "projection"):
        if getattr(config, name) != type(config).model_fields[name].default:
            return f"{name} is for classes"
    return None


def build_text(signature: Signature, config: Any, *, exact: bool) -> nn.Module:
    """The form for text; with one block the causal pass is exact."""
    made = ExactText if exact and config.blocks > 1 else CausalText
    width = config.embedding
    return made(
        vocabulary=signature.vocabulary,
        readout=signature.readout,
        length=signature.length,
        width=width,
        blocks=config.blocks,
        heads=config.heads,
        kernel=config.kernel,
        scale=initial_scale(config.kernel, width) if config.scale is None else config.scale,
        covariates=config.covariates,
        feed_forward=config.feed_forward,
    )


def initial_scale(kernel: Kernel, width: int) -> float:
    """The factor at which random covariates have scores of about 1."""
    exponent = {"rbf": -0.5, "laplacian": -1.0}.get(kernel, -0.25)
    return float(width**exponent)
