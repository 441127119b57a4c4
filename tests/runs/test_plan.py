"""Plans: arguments of recipes, plugins that take part, refused requests."""

from __future__ import annotations

import pytest
from pydantic import BaseModel
from small_runs import TINY

from iclbench import (
    Metric,
    PluginError,
    Recipe,
    RunSpec,
    Task,
    TaskConfig,
    UsageError,
    run,
)
from iclbench.runs.plan import resolve
from iclbench_least_squares.fixed import LeastSquares
from iclbench_solvers.simple import Averaging


def test_the_user_s_arguments_override_the_recipe_s():
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


def test_a_command_leaves_out_what_changes_nothing():
    request = RunSpec(
        model="averaging", task="least-squares", budget="10m", seeds=3, recipe="paper",
        recipe_args={"batch": 8}, dtype="float64",
    )  # fmt: skip
    plan = resolve(request)
    words = "iclbench run --model averaging --task least-squares --recipe paper --dtype float64"
    assert plan.command() == words
    assert resolve(RunSpec.from_command(words)).spec.id == plan.spec.id
    trained = resolve(request.model_copy(update={"model": "transformer", "recipe": "quick"}))
    assert trained.command() == trained.request.command()
    assert "--budget 10m --seeds 3" in trained.command()


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


def test_a_model_that_answers_whether_it_supports_a_task_is_refused(provide):
    class Answering(Averaging):
        name = "answering"

        def supports(self, signature, config):
            return True

    provide("model", "answering", Answering)
    with pytest.raises(PluginError, match="gives True, not None or a reason"):
        resolve(RunSpec(model="answering", **TINY))


def test_arguments_that_are_no_config_are_refused(provide):
    class Loose(Averaging):
        name = "loose"

        class Config(BaseModel):
            width: int = 1

    provide("model", "loose", Loose)
    with pytest.raises(PluginError, match=r"not derived from iclbench\.Config"):
        resolve(RunSpec(model="loose", **TINY))


def test_a_metric_that_measures_nothing_is_refused(provide):
    class Silent(Metric):
        name = "silent"

        def supports(self, task):
            return None

    provide("metric", "silent", Silent)
    with pytest.raises(PluginError, match="silent measures nothing"):
        resolve(RunSpec(model="zero", **TINY, metrics=("silent",)))


def test_a_task_that_arranges_no_batch_is_refused(provide, tmp_path):
    class Tupled(LeastSquares):
        name = "tupled"

        def arrange(self, draws):
            return tuple(super().arrange(draws))

    provide("task", "tupled", Tupled)
    with pytest.raises(PluginError, match="gives a tuple, not an"):
        run(model="baseconv", **{**TINY, "task": "tupled"}, out=tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "zero", "weights": "trained"}, "zero is a solver"),
        ({"model": "zero", "init": "x"}, "zero is a solver"),
        ({"weights": "gd"}, "no such file, and unknown construction"),
        ({"weights": "trained.safetensors"}, "^--weights trained.safetensors: no such file$"),
        ({"init": "runs/gd"}, "^--init runs/gd: no such file$"),
        ({"weights": "."}, "--weights: . is a folder, and unknown construction"),
        ({"init": "trained"}, "unknown construction 'trained'; known: none"),
        ({"init": "gd"}, "--init: no such file"),
        ({"freeze": ["x"]}, "needs --init"),
        ({"perturb": 0.1}, "needs --init"),
        ({"metrics": ["alignment", "alignment"]}, "alignment is named twice"),
        ({"weights_args": {"steps": 3}}, "needs a construction"),
        ({"weights": "x", "init": "y"}, "choose one"),
        ({"model": "transformr"}, "did you mean 'transformer'"),
        ({"task": "least-square"}, "did you mean 'least-squares'"),
        ({"recipe_args": {"step": 3}}, "did you mean 'steps'?"),
        ({"task_args": {"dims": 3}}, "did you mean 'dim'?"),
        ({"dtype": "float16"}, "dtype"),
        ({"eval_prompts": 1}, "eval_prompts"),
        ({"metrics": ["nope"]}, "unknown metric"),
        ({"model_args": {"layers": True}}, "layers: a number is needed"),
        ({"seeds": 20240101}, r"write one seed as \[20240101\]"),
        ({"recipe_args": {"model_args": {"layers": 3}}}, "given by --model-args"),
        ({"recipe_args": {"optimizer_args": {"betas": [2, 0.9]}}}, "betas.0"),
        ({"recipe_args": {"optimizer_args": {"betas": [0.9, 1.0]}}}, "betas.1"),
        ({"recipe_args": {"optimizer": "RAdam", "optimizer_args": {"lr": 5}}}, "learning_rate"),
        ({"model_args": {"mlp": False, "mlp_ratio": 2}}, "mlp_ratio needs mlp=true"),
        ({"model": "lsa", "model_args": {"mlp_ratio": 2}}, "mlp_ratio needs mlp=true"),
        ({"model": "gradient-descent", "model_args": {"normalize": "sum"}}, "needs step_size="),
        ({"model": "hybrid", "model_args": {"layers": 1}}, "2 mixers need as many layers; there"),
        ({"model": "baseconv", "model_args": {"taps": 99}}, "taps=99 exceeds the prompt's"),
    ],
)
def test_requests_that_cannot_run_are_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        run(**{**TINY, "model": "transformer", **changes})


def test_another_optimizer_takes_no_arguments_of_the_recipe_s():
    def optimizer_args(**recipe_args):
        request = {"model": "transformer", "task": "least-squares", "recipe": "precision"}
        return resolve(RunSpec(**request, recipe_args=recipe_args)).recipe.optimizer_args

    assert "eps" in optimizer_args()
    assert "eps" in optimizer_args(steps=5)
    assert optimizer_args(optimizer="ADAM") == optimizer_args()  # the same one
    assert optimizer_args(optimizer="torch.optim.SGD") == {}
    given = {"momentum": 0.9}
    assert optimizer_args(optimizer="torch.optim.SGD", optimizer_args=given) == given


def test_mixed_precision_in_float64_is_refused():
    """Torch would leave it out and say nothing."""
    request = {"model": "transformer", **TINY, "dtype": "float64"}
    args = {**TINY.get("recipe_args", {}), "autocast": "bfloat16"}
    with pytest.raises(UsageError, match="autocast=bfloat16 trains in float32"):
        resolve(RunSpec(**{**request, "recipe_args": args}))
    # What trains nothing has no use for it.
    assert resolve(RunSpec(**{**request, "model": "averaging", "recipe_args": args}))
