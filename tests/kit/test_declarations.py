"""What an architecture or a task declares of itself, and is not so."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from pydantic import Field

from iclbench import Architecture, ConformanceError
from iclbench.api.config import Config
from iclbench.kit.declarations import check_declared, check_replicas_of_model, check_spelling
from iclbench_least_squares.fixed import LeastSquares


class GatedConfig(Config):
    gate: Literal["silu", "sigmoid"] = Field("silu", description="the gate")
    width: int = Field(4, ge=1, description="of the state")
    init_std: float = Field(0.1, gt=0, description="of the first weights")


class Gated(Architecture):
    """Reads its query through a gate that its configuration names."""

    name = "gated"
    Config = GatedConfig

    def supports(self, signature, config):
        return None

    def build(self, signature, config):
        return Module(signature.input_width, config)


class Module(torch.nn.Module):
    def __init__(self, features, config):
        super().__init__()
        self.inner = torch.nn.Parameter(config.init_std * torch.randn(features - 1, config.width))
        self.outer = torch.nn.Parameter(torch.zeros(config.width, 1))
        self.gate = {"silu": torch.nn.functional.silu, "sigmoid": torch.sigmoid}[config.gate]

    def forward(self, prompt):
        return self.gate(prompt.x[:, -1:] @ self.inner) @ self.outer


@pytest.fixture
def task():
    return LeastSquares(LeastSquares.Config(dim=2, examples=3))


def test_the_scale_of_weights_may_differ_between_replicas(task, monkeypatch):
    monkeypatch.setattr(Gated, "replica_args", frozenset({"init_std"}))
    check_replicas_of_model(Gated(), task, GatedConfig())


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gate", "predictions depend beside the weights"), ("width", "weights' shapes depend")],
)
def test_what_the_forward_pass_depends_on_may_not(task, monkeypatch, name, reason):
    monkeypatch.setattr(Gated, "replica_args", frozenset({"init_std", name}))
    with pytest.raises(ConformanceError, match=f"replica_args has {name}, on which .*{reason}"):
        check_replicas_of_model(Gated(), task, GatedConfig())


def test_a_sound_task_declares_what_is_so(task):
    check_declared(task)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": "1"}, "version must be a whole number, not '1'"),
        ({"version": True}, "version must be a whole number"),
        ({"training_only": frozenset({"evalute"})}, "training_only names evalute, which Config"),
        ({"replica_args": frozenset({"dim"})}, "replica_args has dim, on which the signature"),
        ({"errors": {"squared_error": "absolute"}}, "squared_error as absolute.* it grows 4-fold"),
        ({"errors": {"squared_eror": "squared"}}, "errors has squared_eror; did you mean squared_"),
        ({"fractions": frozenset({"squard_error"})}, "fractions has squard_error; did you mean"),
    ],
)
def test_a_false_declaration_is_named(task, monkeypatch, changes, reason):
    for name, value in changes.items():
        monkeypatch.setattr(LeastSquares, name, value)
    with pytest.raises(ConformanceError, match=reason):
        check_declared(task)


def test_a_name_that_another_configuration_has_is_none(task, monkeypatch):
    monkeypatch.setattr(LeastSquares, "unrounded", frozenset({"noise", "weights_of_three"}))
    check_declared(task)


def test_a_metric_without_a_number_is_named(task, monkeypatch):
    metrics = LeastSquares.metrics

    def with_nan(self, prediction, batch):
        values = metrics(self, prediction, batch)
        return {**values, "ratio": values["squared_error"] * float("nan")}

    monkeypatch.setattr(LeastSquares, "metrics", with_nan)
    with pytest.raises(ConformanceError, match="metric ratio is NaN for every prompt"):
        check_declared(task)


def test_targets_that_are_no_numbers_are_named(task, monkeypatch):
    arrange = LeastSquares.arrange

    def without_targets(self, draws):
        batch = arrange(self, draws)
        return batch._replace(target=batch.target * float("nan"))

    monkeypatch.setattr(LeastSquares, "arrange", without_targets)
    with pytest.raises(ConformanceError, match="training targets are not finite"):
        check_declared(task)


def test_a_name_is_misspelt_only_where_the_one_it_is_like_is_missing():
    check_spelling("errors", ["squared_error"], ["squared_error", "absolute_error"])
    # One configuration of a task may measure the first only, another both.
    check_spelling("errors", ["error_far", "error_near"], ["error_near"])
    with pytest.raises(ConformanceError, match="errors has squared_eror; did you mean squared_err"):
        check_spelling("errors", ["squared_eror"], ["squared_error"])
