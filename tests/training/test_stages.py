"""A curriculum: training prompts of stages, whatever draws them, and after a kill."""

from __future__ import annotations

import pytest
import torch
from small import CPU, same, trained, training
from trainings import AGREE, losses_differ_by, training_of

from iclbench import Recipe, Stage, UsageError
from iclbench.api.config import parse_config
from iclbench.api.spec import RunSpec
from iclbench.runs.plan import resolve
from iclbench.training.data import Data
from iclbench.training.resumption import Resumption
from iclbench.training.schedules import fit_schedule
from iclbench_least_squares.fixed import FixedConfig, LeastSquares

PLAIN = LeastSquares(FixedConfig(dim=2, examples=4))
NOISY = PLAIN.at_stage({"noise": 3.0})
#: Ends within a chunk of five, and at the end of one.
STAGES = (Stage(steps=7, task_args={"noise": 3.0}), Stage(steps=8, task_args={"noise": 0.5}))


def data(task, stages, replicas=2) -> Data:
    recipe = Recipe(steps=100, batch=6, chunk=5, stages=stages)
    return Data([task] * replicas, range(replicas), recipe, CPU, torch.float64)


def test_a_chunk_within_a_stage_is_that_of_the_stages_task():
    staged, direct = data(PLAIN, STAGES).next(0), data(NOISY, ()).next(0)
    assert torch.equal(staged.prompt.y, direct.prompt.y)
    last, own = data(PLAIN, STAGES).next(15), data(PLAIN, ()).next(15)
    assert torch.equal(last.prompt.y, own.prompt.y)
    assert not torch.equal(staged.prompt.y, own.prompt.y)


def test_a_chunk_is_divided_at_the_end_of_a_stage():
    chunk = data(PLAIN, STAGES).next(5)
    parts = data(PLAIN, ())
    first = parts.draw(parts.generators, 1)
    assert chunk.prompt.y.shape[:2] == (2, 5)
    # Two batches with noise 3, three with 0.5: the noise is what w does not explain.
    for index, noise in enumerate([3.0, 3.0, 0.5, 0.5, 0.5]):
        x, y = (t[:, index].flatten(0, 1) for t in (chunk.prompt.x, chunk.prompt.y))
        fitted = x @ torch.linalg.lstsq(x, y).solution
        deviation = (y - fitted).square().sum(dim=1).div(2).mean().sqrt()
        assert 0.4 * noise < deviation < 2.5 * noise
    assert not torch.equal(chunk.prompt.y[:, :1], first.prompt.y)


@pytest.mark.parametrize("every", [0, 1000])
def test_a_killed_training_continues_within_the_stages_to_the_same_bits(tmp_path, every):
    straight = trained([1, 2], stages=STAGES)
    assert not same(straight, trained([1, 2]))

    def cut(step, loss):
        if step == 10:
            raise InterruptedError

    kept = Resumption(tmp_path / "c.safetensors", every_seconds=every)
    with pytest.raises(InterruptedError):
        training([1, 2], stages=STAGES).run(kept, cut)
    assert kept.path.exists() == (every == 0)
    resumed = training([1, 2], stages=STAGES).run(kept, lambda step, loss: None)
    assert same(straight, resumed)


def test_drawing_ahead_gives_the_same_training():
    ahead = training([1, 2], stages=STAGES)
    ahead.data.ahead = True
    assert same(ahead.run(None, lambda step, loss: None), trained([1, 2], stages=STAGES))


@pytest.mark.parametrize("engine", ["vmapped", "threaded", "auto"])
def test_every_engine_trains_through_the_stages(engine):
    def make(name):
        request = {
            "model": "transformer",
            "task": "least-squares",
            "task_args": {"dim": 2, "examples": 3},
            "model_args": {"layers": 1, "width": 8},
        }
        stages = [stage.model_dump() for stage in STAGES]
        return training_of(request, 2, {"stages": stages}, engine=name)

    assert losses_differ_by(make("plain"), make(engine)) < AGREE


def test_the_adaptive_schedule_measures_on_prompts_of_the_stage(monkeypatch):
    steps = []
    run = training([1], stages=STAGES, schedule="adaptive", measure_every=10, measure_batches=2)
    draw = run.data.draw
    monkeypatch.setattr(
        run.data, "draw", lambda g, n, step=0: steps.append((n, step)) or draw(g, n, step)
    )
    run.run(None, lambda step, loss: None)
    assert [step for n, step in steps if n == 2 and step % 10 == 0] == [10, 20, 30]


def plan(**recipe_args):
    return resolve(
        parse_config(
            RunSpec,
            {"model": "transformer", "task": "least-squares", "recipe_args": recipe_args},
            "test",
        )
    )


def test_the_spec_records_the_stages_and_nothing_where_there_are_none():
    stages = [{"steps": 10, "task_args": {"noise": 1.0}}]
    assert plan(stages=stages).spec.recipe_args["stages"] == stages
    assert "stages" not in plan().spec.recipe_args
    assert plan(stages=stages).spec.id != plan().spec.id


@pytest.mark.parametrize(
    ("recipe_args", "message"),
    [
        ({"stages": [{"steps": 1, "task_args": {"dim": 3}}]}, "argument of a stage 'dim'"),
        ({"stages": [{"steps": 1, "task_args": {"noise": -1}}]}, "least-squares: stage: noise"),
        ({"stages": [{"steps": 2000, "task_args": {}}]}, "the stages take 2,000 steps of 1,500"),
        ({"stages": [{"task_args": {}}]}, "steps is missing"),
    ],
)
def test_unsuitable_stages_are_refused_in_a_line(recipe_args, message):
    with pytest.raises(UsageError, match=message) as error:
        plan(**recipe_args)
    assert "\n" not in str(error.value)


def test_stages_are_scaled_with_the_schedule():
    recipe = Recipe(
        steps=100, batch=1, schedule_steps=1000, stages=[Stage(steps=300, task_args={})]
    )
    assert fit_schedule(recipe, 100).stages[0].steps == 30
