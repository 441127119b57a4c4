"""A run from spec to record: origins, reuse, precision, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save
from torch import nn

from iclbench import (
    Axis,
    Config,
    Construction,
    Metric,
    PluginError,
    Recipe,
    RecordError,
    RecordStore,
    RunError,
    RunSpec,
    SequenceArchitecture,
    SequenceConfig,
    Task,
    TaskConfig,
    UsageError,
    hookimpl,
    leaderboard,
    run,
    verify,
)
from iclbench.plugins import host
from iclbench.precision import full_precision
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.runs.run import Settings, run_plans
from iclbench.runs.store import read_per_prompt
from iclbench.training.checkpoints import load_weights, weights_bytes
from iclbench_least_squares.fixed import LeastSquares
from iclbench_solvers.simple import Zero

TINY = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "seeds": 2,
    "eval_prompts": 64,
}


class Shift(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return x * self.weight


class Zeroed(Construction):
    summary = "predicts a constant"

    class Config(Config):
        value: float = 0.0

    def build(self, signature, args, task):
        state = {
            "readout.weight": torch.zeros(signature.output_width, 4),
            "readout.bias": torch.full((signature.output_width,), args.value).double(),
        }
        return {"layers": 1, "width": 4}, state


class Complete(Zeroed):
    def build(self, signature, args, task):
        config, state = super().build(signature, args, task)
        made = Fake().build(signature, SequenceConfig(**config)).double()
        return config, {**{n: p.detach() for n, p in made.named_parameters()}, **state}


class Fake(SequenceArchitecture):
    name = "fake"
    constructions = {"partial": Zeroed(), "complete": Complete()}

    def mixer(self, width, length, causal, config):
        return Shift(width)


class Doubled(Metric):
    name = "doubled"

    def supports(self, task):
        return None if task.signature.target == "query" else "it needs a query"

    def compute(self, model, task, batch, context):
        return {"doubled": 2 * task.evaluate(model, batch, context)["squared_error"]}


def save_weights(path, *args):
    path.write_bytes(weights_bytes(*args))


def weights_of(folder, record):
    return RecordStore(folder).path(record.spec).parent / record.weights.file


@pytest.fixture
def fake(provide):
    provide("model", "fake", Fake)


def test_a_solver_s_record(tmp_path):
    record = run(model="zero", **TINY, out=tmp_path)
    assert record.spec.origin == "solver"
    assert record.spec.seeds == ()
    assert record.spec.recipe == ""
    assert record.parameters == 0
    assert record.training is None
    assert [seed.seed for seed in record.seeds] == [None]
    assert {p.name for p in record.plugins} == {"solvers", "least-squares"}
    assert record.floor["squared_error"].median < 1e-10


def test_a_trained_model_s_record(tmp_path):
    record = run(model="transformer", **TINY, out=tmp_path)
    assert record.spec.origin == "trained"
    assert [seed.seed for seed in record.seeds] == [0, 1]
    assert record.training.replicas == 2
    assert record.training.steps == 20
    assert record.training.curve_steps[-1] == 20
    assert len(record.training.curve[0]) == 2
    assert record.environment.versions["torch"] == torch.__version__
    values = read_per_prompt(RecordStore(tmp_path).path(record.spec), record)[
        "metric/squared_error"
    ]
    assert values.shape == (2, 64)
    assert record.metrics["squared_error"].mean == pytest.approx(values.mean())
    assert record.seeds[1].metrics["squared_error"].median == pytest.approx(np.median(values[1]))
    assert set(load_weights(weights_of(tmp_path, record)).states) == {0, 1}
    assert not list(tmp_path.glob("checkpoints/*"))


def test_prefixes_have_their_curve(tmp_path):
    args = {**TINY, "task": "least-squares-prefixes"}
    record = run(model="least-squares-qr", **args, out=tmp_path)
    curve = record.curves["prefix_error"]
    assert curve.axis == "prefix"
    assert curve.values == [0, 1, 2, 3, 4]
    assert curve.mean == record.floor_curves["prefix_error"].mean
    assert curve.mean[0] > 0.5
    assert max(curve.mean[2:]) < 1e-6


def test_a_run_with_a_record_is_reported_and_not_rerun(tmp_path, capsys):
    first = run(model="transformer", **TINY, out=tmp_path)
    again = run(model="transformer", **TINY, out=tmp_path)
    assert again == first
    assert f"has a record of {first.created}; --force runs it again" in capsys.readouterr().err
    forced = run(model="transformer", **TINY, out=tmp_path, force=True)
    assert forced.id == first.id
    assert forced.metrics == first.metrics
    assert len(list(tmp_path.glob("*/*"))) == 3


def test_a_record_of_other_code_is_reported_as_such(tmp_path, capsys):
    record = run(model="zero", **TINY, out=tmp_path)
    old = [p.model_copy(update={"source": "0" * 64}) for p in record.plugins]
    RecordStore(tmp_path).write(record.model_copy(update={"plugins": old}))
    run(model="zero", **TINY, out=tmp_path)
    assert "made by another version of least-squares, solvers" in capsys.readouterr().err


def test_a_force_that_is_cut_off_leaves_the_old_record_whole(tmp_path, monkeypatch):
    record = run(model="baseconv", **TINY, out=tmp_path)

    def cut(self, record):
        raise KeyboardInterrupt

    plan = resolve(RunSpec(model="baseconv", **TINY))
    monkeypatch.setattr(RecordStore, "write", cut)
    monkeypatch.setattr(plan.task, "version", 1)
    with pytest.raises(KeyboardInterrupt):
        run_plans([plan], Settings(tmp_path, force=True, eval_batch=7))
    monkeypatch.undo()
    found = run(model="baseconv", **TINY, out=tmp_path)
    assert found == record
    assert all(check.holds for check in verify(RecordStore(tmp_path).path(record.spec)))


def test_a_damaged_record_is_not_passed_over(tmp_path):
    record = run(model="zero", **TINY, out=tmp_path)
    path = RecordStore(tmp_path).path(record.spec)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(RecordError, match="truncated"):
        run(model="zero", **TINY, out=tmp_path)
    assert run(model="zero", **TINY, out=tmp_path, force=True).metrics == record.metrics


def test_one_solver_has_one_record_whatever_the_recipe(tmp_path):
    args = {**TINY, "task_args": {}}
    specs = [
        resolve(RunSpec(model="zero", **{**args, "recipe": r, "seeds": s})).spec
        for r, s in (("smoke", 1), ("quick", 3))
    ]
    assert specs[0].id == specs[1].id


@pytest.mark.parametrize("eval_batch", [1, 7, 4096])
@pytest.mark.parametrize("model", ["transformer", "baseconv", "least-squares-qr"])
def test_the_evaluation_batch_changes_nothing_beyond_the_last_bits(tmp_path, eval_batch, model):
    """Errors, roots of squared errors, move by at most 2e-6 beside targets of size 1 to 5."""
    plan = resolve(RunSpec(model=model, **{**TINY, "eval_prompts": 300}))
    values = []
    for size, folder in ((64, "a"), (eval_batch, "b")):
        (record,) = run_plans([plan], Settings(tmp_path / folder, eval_batch=size))
        path = RecordStore(tmp_path / folder).path(record.spec)
        values.append(np.sqrt(read_per_prompt(path, record)["metric/squared_error"]))
    if model == "least-squares-qr":
        np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_allclose(values[0], values[1], rtol=0, atol=2e-6)


def test_the_same_seed_gives_the_same_record(tmp_path):
    a = run(model="baseconv", **TINY, out=tmp_path / "a")
    b = run(model="baseconv", **TINY, out=tmp_path / "b")
    assert a.id == b.id
    assert a.metrics == b.metrics
    assert a.weights.sha256 == b.weights.sha256


def test_seeds_differ_and_evaluation_does_not(tmp_path):
    a = run(model="baseconv", **{**TINY, "seeds": [0]}, out=tmp_path)
    b = run(model="baseconv", **{**TINY, "seeds": [1]}, out=tmp_path)
    assert a.metrics != b.metrics
    assert a.evaluation.digest == b.evaluation.digest
    assert a.floor == b.floor


def test_loaded_weights_are_evaluated_and_never_trained(tmp_path):
    trained = run(model="transformer", **TINY, out=tmp_path)
    weights = weights_of(tmp_path, trained)
    loaded = run(model="transformer", **TINY, weights=str(weights), out=tmp_path / "other")
    assert loaded.spec.origin == "loaded"
    assert loaded.training is None
    assert loaded.spec.model_args == trained.spec.model_args
    assert loaded.metrics == trained.metrics


def test_training_starts_from_given_weights(tmp_path):
    trained = run(model="transformer", **TINY, out=tmp_path)
    weights = weights_of(tmp_path, trained)
    plan = resolve(RunSpec(model="transformer", **TINY, init=str(weights)))
    module = initial_module(plan, 1)
    states = load_weights(weights).states
    torch.testing.assert_close(module.positions.detach(), states[1]["positions"])
    assert plan.spec.checkpoint_digest == trained.weights.sha256
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


def test_frozen_parameters_stay_and_perturbed_ones_move(tmp_path, fake):
    spec = {**TINY, "init": "partial", "freeze": ["readout.*"], "recipe_args": {"steps": 3}}
    record = run(model="fake", **spec, out=tmp_path)
    weights = weights_of(tmp_path, record)
    for state in load_weights(weights).states.values():
        assert (state["readout.weight"] == 0).all()
    perturbed = resolve(RunSpec(model="fake", **{**spec, "perturb": 0.1}))
    plain = resolve(RunSpec(model="fake", **spec))
    for seed in (0, 1):
        moved, still = initial_module(perturbed, seed), initial_module(plain, seed)
        assert torch.equal(moved.readout.weight, still.readout.weight)
        change = moved.positions - still.positions
        assert change.std().item() == pytest.approx(0.1, rel=0.5)


def test_arguments_of_a_construction_count_by_their_meaning(fake):
    ids = {
        resolve(RunSpec(model="fake", **TINY, weights="complete", weights_args=args)).spec.id
        for args in ({}, {"value": 0}, {"value": 0.0})
    }
    assert len(ids) == 1
    betas = {"optimizer_args": {"betas": [0.9, 0.999]}}
    plain = resolve(RunSpec(model="fake", **TINY)).spec
    assert resolve(RunSpec(model="fake", **{**TINY, "recipe_args": betas})).spec.id == plain.id


def test_further_metrics_are_measured(tmp_path, provide):
    provide("metric", "doubled", Doubled)
    record = run(model="zero", **TINY, metrics=["doubled"], out=tmp_path)
    assert record.metrics["doubled"].mean == pytest.approx(2 * record.metrics["squared_error"].mean)
    assert record.id != run(model="zero", **TINY, out=tmp_path).id
    with pytest.raises(UsageError, match="doubled does not apply"):
        run(model="zero", **{**TINY, "task": "least-squares-prefixes"}, metrics=["doubled"])


def test_a_further_metric_may_have_an_axis(tmp_path, provide):
    class Twofold(Doubled):
        name = "twofold"

        def axes(self, model):
            return {"twofold": Axis("times", (1.0, 2.0))}

        def compute(self, model, task, batch, context):
            error = task.evaluate(model, batch, context)["squared_error"]
            return {"twofold": torch.stack([error, 2 * error], dim=1)}

    provide("metric", "twofold", Twofold)
    record = run(model="zero", **TINY, metrics=["twofold"], out=tmp_path)
    curve = record.curves["twofold"]
    assert (curve.axis, curve.values) == ("times", [1, 2])
    assert curve.mean[1] == pytest.approx(2 * curve.mean[0])
    assert all(check.holds for check in verify(RecordStore(tmp_path).path(record.spec)))


def test_a_task_without_a_reference_has_no_floor(tmp_path, provide):
    class Floorless(LeastSquares):
        name = "floorless"

        def floor(self, batch, context):
            return {}

    provide("task", "floorless", Floorless)
    record = run(model="zero", **{**TINY, "task": "floorless"}, out=tmp_path)
    assert record.floor == {}
    (board,) = leaderboard(tmp_path)
    assert board.rows["model"].tolist() == ["zero"]
    assert all(check.holds for check in verify(RecordStore(tmp_path).path(record.spec)))


def test_a_tracker_hears_how_a_run_ends(tmp_path, provide):
    class Failing(Zero):
        name = "failing"

        def weights(self, examples, config):
            raise RuntimeError("no luck")

    class Tracker:
        heard = []

        @hookimpl
        def iclbench_run_started(self, spec):
            self.heard.append(("started", spec.model))

        @hookimpl
        def iclbench_training_step(self, spec, step, loss):
            self.heard.append(("step", len(loss)))

        @hookimpl
        def iclbench_run_finished(self, spec, record):
            self.heard.append(("finished", record.id == spec.id))

        @hookimpl
        def iclbench_run_failed(self, spec, error):
            self.heard.append(("failed", str(error)))

    provide("model", "failing", Failing)
    tracker = Tracker()
    host().observe(tracker, "tracker")
    try:
        run(model="baseconv", **{**TINY, "recipe_args": {"steps": 1}}, out=tmp_path)
        with pytest.raises(RuntimeError):
            run(model="failing", **TINY, out=tmp_path)
    finally:
        host().forget(tracker)
    assert tracker.heard == [
        ("started", "baseconv"),
        ("step", 2),
        ("finished", True),
        ("started", "failing"),
        ("failed", "no luck"),
    ]


@pytest.mark.parametrize("fault", ["no primary metric", "targets without positions"])
def test_a_task_that_does_not_fit_leaves_no_record(tmp_path, provide, fault):
    class Faulty(LeastSquares):
        name = "faulty"

        def metrics(self, prediction, batch):
            found = super().metrics(prediction, batch)
            return {"other": found["squared_error"]} if fault == "no primary metric" else found

        def evaluation_batches(self, n, seed, dtype):
            batches = super().evaluation_batches(n, seed, dtype)
            return (
                [b._replace(target=b.target[:, 0]) for b in batches] if "out" in fault else batches
            )

    provide("task", "faulty", Faulty)
    with pytest.raises((RunError, UsageError), match=r"ranks by squared_error|targets are"):
        run(model="zero", **{**TINY, "task": "faulty"}, out=tmp_path)
    assert not list(tmp_path.glob("*/*.json"))


def test_a_metric_cannot_replace_the_task_s(tmp_path, provide):
    class Impostor(Doubled):
        name = "impostor"

        def compute(self, model, task, batch, context):
            return {"squared_error": torch.zeros(len(batch.target)).double()}

    provide("metric", "impostor", Impostor)
    with pytest.raises(RunError, match="measured twice"):
        run(model="zero", **TINY, metrics=["impostor"], out=tmp_path)
    assert not list(tmp_path.glob("*/*.json"))


def test_a_recipe_s_arguments_give_way_to_the_user_s():
    recipe = resolve(RunSpec(model="transformer", **TINY)).spec
    assert (recipe.model_args["layers"], recipe.model_args["width"]) == (1, 16)
    user = resolve(RunSpec(model="transformer", **{**TINY, "model_args": {"width": 8}})).spec
    assert (user.model_args["layers"], user.model_args["width"]) == (1, 8)
    assert user.id != recipe.id


def test_a_task_s_own_recipe_comes_first():
    spec = resolve(RunSpec(model="transformer", task="least-squares", recipe="paper")).spec
    assert spec.recipe_args["steps"] == 1_000_000
    assert spec.model_args["layers"] == 12
    with pytest.raises(UsageError, match="did you mean 'paper'"):
        resolve(RunSpec(model="transformer", task="least-squares", recipe="papre"))


def test_a_recipe_s_plugin_took_part(tmp_path, provide):
    provide("recipe", "own", Recipe(steps=2, batch=4, model_args={"layers": 1, "width": 8}))
    record = run(model="baseconv", **{**TINY, "recipe": "own"}, out=tmp_path)
    assert "test-plugin" in {plugin.name for plugin in record.plugins}


def test_a_task_that_sets_no_version_is_refused(provide):
    class Unversioned(Task):
        name = "unversioned"
        Config = TaskConfig
        signature = draw = arrange = loss = metrics = None

    provide("task", "unversioned", Unversioned)
    with pytest.raises(PluginError, match="does not set version"):
        run(model="zero", task="unversioned")


def test_a_diverged_seed_is_in_the_record(tmp_path):
    args = {**TINY, "recipe_args": {"optimizer": "sgd", "learning_rate": 1e30}}
    record = run(model="transformer", **args, out=tmp_path)
    assert all(seed.diverged_at is not None for seed in record.seeds)
    assert record.training.steps == record.training.curve_steps[-1] > 0
    json.loads(RecordStore(tmp_path).path(record.spec).read_text(), parse_constant=pytest.fail)


def test_learning_rates_are_replicas_of_one_program(tmp_path):
    plans = [
        resolve(RunSpec(model="baseconv", **{**TINY, "recipe_args": {"learning_rate": rate}}))
        for rate in (1e-3, 1e-2)
    ]
    together = run_plans(plans, Settings(tmp_path / "a"))
    assert [record.training.replicas for record in together] == [4, 4]
    assert together[0].training.seconds == together[1].training.seconds
    for plan, record in zip(plans, together, strict=True):
        (alone,) = run_plans([plan], Settings(tmp_path / "b"))
        assert alone.id == record.id
        np.testing.assert_allclose(alone.training.curve, record.training.curve, rtol=1e-3)


def precision():
    backends = torch.backends
    owners = [backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn]
    owners += [backends.mkldnn.matmul, backends.mkldnn.conv, backends.mkldnn.rnn]
    return [owner.fp32_precision for owner in owners]


@pytest.mark.skipif(not hasattr(torch.backends.cudnn, "conv"), reason="torch before 2.9")
@pytest.mark.parametrize("how", ["default", "legacy", "new"])
def test_reduced_precision_is_off_during_a_run_and_restored_after(how):
    matmul = torch.backends.cuda.matmul
    if how == "legacy":
        torch.set_float32_matmul_precision("medium")
    if how == "new":
        matmul.fp32_precision = torch.backends.mkldnn.conv.fp32_precision = "tf32"
    before = precision()
    try:
        assert matmul.allow_bf16_reduced_precision_reduction
        with full_precision(torch.float64):
            assert set(precision()) == {"ieee"}
            assert not matmul.allow_bf16_reduced_precision_reduction
            assert torch.get_default_dtype() == torch.float64
        assert precision() == before
        assert matmul.allow_bf16_reduced_precision_reduction
        assert torch.get_default_dtype() == torch.float32
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.backends.mkldnn.conv.fp32_precision = "none"


def test_initialization_does_not_depend_on_data_or_on_torch_s_generator():
    plans = [
        resolve(RunSpec(model="baseconv", **{**TINY, "recipe_args": {"batch": b}})) for b in (4, 8)
    ]
    torch.manual_seed(1)
    first = initial_module(plans[0], 0)
    torch.manual_seed(2)
    second = initial_module(plans[1], 0)
    assert torch.equal(first.positions, second.positions)
    assert not torch.equal(first.positions, initial_module(plans[0], 1).positions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "zero", "weights": "trained"}, "zero is a solver"),
        ({"model": "zero", "init": "x"}, "zero is a solver"),
        ({"weights": "gd"}, "no such file, and unknown construction"),
        ({"init": "gd"}, "--init: no such file"),
        ({"freeze": ["x"]}, "needs --init"),
        ({"perturb": 0.1}, "needs --init"),
        ({"weights_args": {"steps": 3}}, "are a construction's"),
        ({"weights": "x", "init": "y"}, "choose one"),
        ({"model": "transformr"}, "did you mean 'transformer'"),
        ({"task": "least-square"}, "did you mean 'least-squares'"),
        ({"recipe_args": {"step": 3}}, "did you mean steps"),
        ({"task_args": {"dims": 3}}, "did you mean dim"),
        ({"dtype": "float16"}, "dtype"),
        ({"eval_prompts": 1}, "eval_prompts"),
        ({"metrics": ["nope"]}, "unknown metric"),
        ({"model_args": {"layers": True}}, "layers: a number is needed"),
        ({"seeds": 20240101}, r"one seed is written as \[20240101\]"),
        ({"recipe_args": {"model_args": {"layers": 3}}}, "given by --model-args"),
        ({"recipe_args": {"optimizer_args": {"betas": [2, 0.9]}}}, "betas.0"),
        ({"recipe_args": {"optimizer_args": {"betas": [0.9, 1.0]}}}, "betas.1"),
        ({"recipe_args": {"optimizer": "RAdam", "optimizer_args": {"lr": 5}}}, "learning_rate"),
        ({"seed": 1}, "did you mean seeds"),
    ],
)
def test_what_cannot_be_run_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        run(**{**TINY, "model": "transformer", **changes})


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


@pytest.mark.gpu
def test_a_gpu_gives_what_the_cpu_gives(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    args = {**TINY, "dtype": "float64"}
    gpu = run(model="least-squares-qr", **args, out=tmp_path / "gpu", device="cuda")
    cpu = run(model="least-squares-qr", **args, out=tmp_path / "cpu", device="cpu")
    assert gpu.metrics["squared_error"].median < 1e-26
    assert gpu.evaluation.digest == cpu.evaluation.digest
    trained = run(model="baseconv", **args, out=tmp_path / "gpu", device="cuda")
    assert trained.environment.device != "cpu"
