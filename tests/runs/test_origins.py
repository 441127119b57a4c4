"""Origins: loaded weights, constructions, and training that starts from either."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save
from small_runs import TINY, Complete, save_weights, weights_of

from iclbench import (
    IclbenchError,
    RecordError,
    RecordStore,
    RunSpec,
    UsageError,
    run,
    verify,
)
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.training.checkpoints import load_weights
from iclbench_transformer.architecture import Transformer


def test_loaded_weights_are_evaluated_and_never_trained(tmp_path):
    trained = run(model="transformer", **TINY, out=tmp_path)
    weights = weights_of(tmp_path, trained)
    loaded = run(model="transformer", **TINY, weights=str(weights), out=tmp_path / "other")
    assert loaded.spec.origin == "loaded"
    assert loaded.training is None
    assert loaded.spec.model_args == trained.spec.model_args
    assert loaded.metrics == trained.metrics
    path = RecordStore(tmp_path).path_of(trained)
    of_record = run(model="transformer", **TINY, weights=path, out=tmp_path / "other")
    assert of_record.id == loaded.id
    with pytest.raises(UsageError, match="init: string should have at least 1 character"):
        run(model="transformer", **TINY, init="", out=tmp_path)


def test_training_starts_from_given_weights(tmp_path):
    trained = run(model="transformer", **TINY, out=tmp_path)
    weights = weights_of(tmp_path, trained)
    plan = resolve(RunSpec(model="transformer", **TINY, init=str(weights)))
    module = initial_module(plan, 1)
    states = load_weights(weights).states
    torch.testing.assert_close(module.positions.detach(), states[1]["positions"])
    assert plan.spec.checkpoint_digest == trained.weights_file.sha256
    more = run(model="transformer", **TINY, init=str(weights), out=tmp_path)
    assert more.spec.origin == "trained"
    assert more.id != trained.id


def test_a_construction_is_built_and_is_not_a_trained_row(tmp_path, fake):
    args = {**TINY, "dtype": "float64"}
    record = run(model="fake", **args, weights="complete", weights_args={"value": 0.1},
                 out=tmp_path)  # fmt: skip
    assert record.spec.origin == "constructed"
    assert record.spec.model_args["width"] == 4
    zero = run(model="fake", **args, weights="complete", out=tmp_path)
    reference = run(model="zero", **args, out=tmp_path)
    assert zero.metrics == reference.metrics
    assert record.metrics != zero.metrics


def test_a_partial_construction_only_starts_a_training(fake):
    with pytest.raises(RecordError, match="is missing"):
        run(model="fake", **TINY, weights="partial")
    plan = resolve(RunSpec(model="fake", **TINY, init="partial", weights_args={"value": 0.5}))
    first, second = initial_module(plan, 0), initial_module(plan, 1)
    assert first.readout.bias.item() == second.readout.bias.item() == 0.5
    assert not torch.equal(first.positions, second.positions)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (({}, {"a": torch.zeros(1)}), "TypeError: a is torch.float32, and must be torch.float64"),
        ((None, {}), "TypeError: 'NoneType' object is not iterable"),
        (ValueError("boom"), "ValueError: boom"),
        (UsageError("it needs a square"), "it needs a square"),
    ],
)
def test_a_construction_that_fails_is_named(monkeypatch, fake, made, message):
    def build(self, signature, args, task):
        if isinstance(made, Exception):
            raise made
        return made

    monkeypatch.setattr(Complete, "build", build)
    with pytest.raises(IclbenchError, match=message):
        resolve(RunSpec(model="fake", **TINY, weights="complete"))


def test_equal_arguments_of_a_construction_give_equal_ids(fake):
    ids = {
        resolve(RunSpec(model="fake", **TINY, weights="complete", weights_args=args)).spec.id
        for args in ({}, {"value": 0}, {"value": 0.0})
    }
    assert len(ids) == 1
    betas = {"optimizer_args": {"betas": [0.9, 0.999]}}
    plain = resolve(RunSpec(model="fake", **TINY)).spec
    assert resolve(RunSpec(model="fake", **{**TINY, "recipe_args": betas})).spec.id == plain.id


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path):
    other = tmp_path / "other.safetensors"
    save_weights(other, {0: {"nonsense": torch.zeros(3)}}, "baseconv", {})
    with pytest.raises(UsageError, match="weights of baseconv, not of transformer"):
        run(model="transformer", **TINY, weights=str(other))
    with pytest.raises(RecordError, match="nonsense is not in the model"):
        run(model="baseconv", **TINY, weights=str(other))
    with pytest.raises(RecordError, match="does not fit"):
        run(model="baseconv", **TINY, init=str(other))
    save_weights(other, {None: {"positions": torch.zeros(5, 16)}}, "baseconv", {})
    with pytest.raises(RecordError, match="is missing"):
        run(model="baseconv", **TINY, init=str(other))
    save_weights(other, {0: {"positions": torch.zeros(3)}}, "baseconv", {})
    with pytest.raises(RecordError, match=r"positions is \(3,\)"):
        run(model="baseconv", **TINY, init=str(other))
    save_weights(other, {}, "baseconv", {})
    for option in ("weights", "init"):
        with pytest.raises(RecordError, match="holds no tensors"):
            run(model="baseconv", **{**TINY, option: str(other)})
    for about in ("[1]", '{"model_args": [1]}', "nonsense"):
        other.write_bytes(save({"x": torch.zeros(1)}, metadata={"iclbench": about}))
        with pytest.raises(UsageError):
            run(model="baseconv", **TINY, weights=str(other))
    other.write_text("nonsense")
    with pytest.raises(RecordError, match="can't be read"):
        run(model="baseconv", **TINY, weights=str(other))


def test_init_needs_the_weights_of_every_seed(tmp_path):
    path = tmp_path / "w.safetensors"
    save_weights(path, {0: {}, 1: {}}, "baseconv", {})
    save_weights(path, {s: {"positions": torch.zeros(5, 16)} for s in (0, 1)}, "baseconv", {})
    with pytest.raises(UsageError, match="no weights of seed 2"):
        run(model="baseconv", **{**TINY, "seeds": 3}, init=str(path))


class Renaming(Transformer):
    """A transformer that takes weights whose names begin with `model.`."""

    name = "renaming"

    def convert_weights(self, state, signature, config):
        assert signature.length == 5
        if "other" in state:
            raise KeyError("model.positions")
        return {name.removeprefix("model."): value for name, value in state.items()}


def test_foreign_weights_are_converted(tmp_path, provide):
    provide("model", "renaming", Renaming)
    trained = run(model="transformer", **{**TINY, "seeds": 1}, out=tmp_path)
    (state,) = load_weights(weights_of(tmp_path, trained)).states.values()
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_bytes(save({f"model.{name}": value for name, value in state.items()}))
    args = {**TINY, "model_args": trained.spec.model_args}
    loaded = run(model="renaming", **args, weights=str(foreign), out=tmp_path / "other")
    assert loaded.spec.origin == "loaded"
    assert loaded.main.values == trained.main.values
    # Its own weights have the module's names, so they are not converted: it verifies.
    (path,) = RecordStore(tmp_path / "other").paths()
    assert [check.name for check in verify(path) if not check.holds] == []
    with pytest.raises(RecordError, match=r"model\..* is not in the model"):
        run(model="transformer", **args, weights=str(foreign), out=tmp_path)


def test_weights_that_cannot_be_converted_are_refused_in_a_line(tmp_path, provide):
    provide("model", "renaming", Renaming)
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_bytes(save({"other": torch.zeros(1)}))
    with pytest.raises(UsageError, match="renaming can't convert the given weights: KeyError"):
        run(model="renaming", **TINY, weights=str(foreign))
