"""Seeds apart: merged into one record as if they had been trained together."""

from __future__ import annotations

import pytest

from iclbench import RecordError, RunSpec
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.sweeps.campaign.apart import merge, run_seed
from iclbench.training.loop import Training


def test_a_seed_that_diverges_alone_is_merged_like_one_among_others(tmp_path, monkeypatch):
    args = {"model_args": {"layers": 1, "width": 16}, "recipe_args": {"steps": 60}}
    plan = resolve(RunSpec(
        model="transformer", task="least-squares", seeds=3, eval_prompts=64, **args
    ))  # fmt: skip
    update = Training.update

    def diverging(self, batch, factor, step):
        if int(step) == 30:
            for replica, member in enumerate(self.members):
                if member.seed == 1:
                    self.replicas.flat[replica, 0] = float("nan")
        return update(self, batch, factor, step)

    monkeypatch.setattr(Training, "update", diverging)
    settings = Settings(tmp_path / "out", device="cpu")
    for seed in plan.spec.seeds:
        run_seed(plan, seed, settings)
    apart = merge(plan, settings)
    (together,) = run_plans([plan], Settings(tmp_path / "together", device="cpu"))
    for record in (apart, together):
        assert [seed.diverged_at for seed in record.seeds] == [None, 29, None]
    assert apart.training.steps == together.training.steps == 60
    for found, expected in zip(apart.training.curve, together.training.curve, strict=True):
        assert [loss is None for loss in found] == [loss is None for loss in expected]


def test_seeds_are_merged_once_all_are_there(tmp_path):
    plan = resolve(RunSpec(model="lsa", task="least-squares", recipe="smoke", seeds=(0, 1)))
    settings = Settings(tmp_path / "out", device="cpu")
    run_seed(plan, 0, settings)
    with pytest.raises(RecordError, match="seed 1 of lsa has no record"):
        merge(plan, settings)
