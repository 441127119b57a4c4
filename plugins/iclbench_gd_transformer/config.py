"""The settings of the GD transformer, and which of them fit which kind of task."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from iclbench import Config, Signature, added_later

from .kernels import DEGREE, Kernel, require_degree

Projection = Literal["full", "diagonal"]
Covariates = Literal["random", "sinusoidal"]

#: The factor on the tokens of the free form. From 1, training often ends at chance; from anything
#: between 0.18 and 0.35 it does not (sweeps/free-scale.toml).
FREE_SCALE = 0.25


class GDTransformerConfig(Config):
    """Form, number of blocks and kernel."""

    form: Literal["gd", "free"] = Field(
        "gd",
        description="gd learns only the parameters of gradient descent; free learns all "
        "attention matrices",
    )
    blocks: int = Field(1, ge=1, description="K, number of attention blocks, each a gradient step")
    kernel: Kernel = Field("rbf", description="κ, the kernel of self-attention")
    heads: int = Field(
        1, ge=1, description="form=gd: number of kernels κ(Λ_m x, Λ_m x') that are summed"
    )
    embedding: int = Field(5, ge=1, description="d', dimension of f and of the class embeddings")
    scale: float | None = Field(
        None,
        gt=0,
        description="factor in the kernel; form=gd: initial factor on x, null: d^−½, and on the "
        "positions of texts by kernel (see the README); form=free: "
        "fixed factor on tokens, 0.25 if not given, null: 1, or D^−½ for several blocks of "
        "kernel exponential or polynomial",
    )
    erase: float | None = Field(
        None,
        gt=0,
        description="form=gd: λ of a second head that subtracts E(w_e) before the next block; "
        "null: the new E(w_e) replaces the old one",
    )
    degree: int = added_later(DEGREE, ge=1, le=100, description="degree, for kernel=polynomial")
    bias: bool = added_later(
        False, description="form=gd: f(x) = Aψ(x) + b, with gradient steps on b as well"
    )
    normalize: bool = added_later(False, description="divide the covariates by their norms")
    projection: Projection = added_later(
        "full", description="form=gd: whether the matrices P_m are full or diagonal"
    )
    feed_forward: bool = added_later(
        False,
        description="for tasks that ask for tokens: apply f + mlp(norm(f)) at the query before the "
        "answer",
    )
    covariates: Covariates = added_later(
        "random",
        description="for tasks that ask for tokens: initialization of the learned positions",
    )

    @model_validator(mode="before")
    @classmethod
    def _scale_of_the_free_form(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("form") == "free":
            return {"scale": FREE_SCALE, **values}
        return values

    @model_validator(mode="after")
    def _degree_has_a_meaning(self) -> GDTransformerConfig:
        require_degree(self.kernel, self.degree)
        return self


def class_refusal(config: GDTransformerConfig) -> str | None:
    """Why a configuration does not fit a task that asks for classes, or None."""
    if config.feed_forward or config.covariates != "random":
        return "feed_forward and covariates are for tasks that ask for a token"
    if config.form == "free":
        for name in ("erase", "bias", "projection"):
            if _is_set(config, name):
                return f"form=free has no {name}"
        if config.heads > 1:
            return "form=free has a fixed number of heads; leave heads out"
    if config.erase is not None and config.blocks == 1:
        return "erase acts between blocks: it needs blocks=2 or more"
    return None


def text_refusal(signature: Signature, config: GDTransformerConfig) -> str | None:
    """Why a configuration does not fit a task that asks for tokens, or None."""
    if signature.reads_one_state:
        return (
            "it predicts once per position, and the task asks for several predictions at one "
            "position"
        )
    if config.form == "free":
        return "form=free is for classes; on text, use transformer as the free model"
    if config.erase is not None:
        return "erase is for classes; on text, E is overwritten"
    if config.kernel == "polynomial":
        return "kernel=polynomial is for classes"
    for name in ("degree", "bias", "normalize", "projection"):
        if _is_set(config, name):
            return f"{name} is for classes"
    return None


def _is_set(config: GDTransformerConfig, name: str) -> bool:
    """Whether a field differs from its default."""
    return bool(getattr(config, name) != type(config).model_fields[name].default)
