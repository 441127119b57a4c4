"""Seeds apart: merged into one record as if they had been trained together."""

from __future__ import annotations

import pytest

from iclbench import RecordError, RecordStore, RunError, RunSpec, UsageError, verify
from iclbench.api.costs import BudgetReport
from iclbench.runs.fixed_steps import FixedSteps, known_steps, steps_path
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record
from iclbench.runs.training import checkpoint_path, training_code
from iclbench.sweeps.campaign import apart
from iclbench.sweeps.campaign.apart import (
    SEEDS,
    _budget,
    merge,
    run_seed,
    seed_plan,
    seed_settings,
)
from iclbench.sweeps.campaign.taken import take_seeds
from iclbench.sweeps.record_paths import record_paths
from iclbench.training.loop import Training
from iclbench.training.platforms import MOVED


@pytest.mark.parametrize("lost", [0, 1])
def test_a_seed_that_diverges_alone_is_merged_like_one_among_others(tmp_path, monkeypatch, lost):
    args = {"model_args": {"layers": 1, "width": 16}, "recipe_args": {"steps": 60}}
    plan = resolve(RunSpec(
        model="transformer", task="least-squares", seeds=3, eval_prompts=64, **args
    ))  # fmt: skip
    update = Training.update

    def diverging(self, batch, factor, step):
        if int(step) == 30:
            for replica, member in enumerate(self.members):
                if member.seed == lost:
                    self.replicas.flat[replica, 0] = float("nan")
        return update(self, batch, factor, step)

    monkeypatch.setattr(Training, "update", diverging)
    settings = Settings(tmp_path / "out", device="cpu")
    for seed in plan.spec.seeds:
        run_seed(plan, seed, settings)
    merged = merge(plan, settings)
    (together,) = run_plans([plan], Settings(tmp_path / "together", device="cpu"))
    for record in (merged, together):
        expected = [29 if seed == lost else None for seed in plan.spec.seeds]
        assert [seed.diverged_at for seed in record.seeds] == expected
    assert merged.training.steps == together.training.steps == 60
    for found, expected in zip(merged.training.curve, together.training.curve, strict=True):
        assert [loss is None for loss in found] == [loss is None for loss in expected]
    path = RecordStore(settings.out).path(plan.spec)
    assert [check.name for check in verify(path, "cpu") if not check.holds] == []
    # The seeds' own records beside it are no rows.
    assert record_paths([settings.out]) == [path]


def test_seeds_are_merged_once_all_are_there(tmp_path):
    plan = resolve(RunSpec(model="lsa", task="least-squares", recipe="smoke", seeds=(0, 1)))
    settings = Settings(tmp_path / "out", device="cpu")
    run_seed(plan, 0, settings)
    with pytest.raises(RecordError, match="seed 1 of lsa has no record"):
        merge(plan, settings)


@pytest.mark.parametrize("threads", [None, 64])
def test_a_merged_record_says_where_a_seed_was_trained_elsewhere(tmp_path, threads):
    plan = resolve(RunSpec(model="lsa", task="least-squares", recipe="smoke", seeds=(0, 1)))
    settings = Settings(tmp_path / "out", device="cpu")
    for seed in plan.spec.seeds:
        run_seed(plan, seed, settings)
    store = RecordStore(seed_settings(settings).out)
    record = store.find(seed_plan(plan, 1).spec)
    elsewhere = record.environment.model_copy(update={"threads": threads} if threads else {})
    store.write(record.model_copy(update={"environment": elsewhere}))
    note = "each seed was trained in its own process"
    moved = f"; {MOVED}: other threads"
    assert merge(plan, settings).training.note == note + (moved if threads else "")


def fixed_to_seven_steps(out):
    """A plan of two seeds, its settings, and the steps of the first with the path of their file."""
    plan = resolve(RunSpec(model="lsa", task="least-squares", budget="1s", seeds=(0, 1)))
    settings = Settings(out, device="cpu")
    first = seed_plan(plan, 0)
    path = steps_path(checkpoint_path([first], seed_settings(settings).out))
    path.parent.mkdir(parents=True)
    fixed = FixedSteps(steps=7, rate=7.0, asked="1s", code=training_code([first]))
    return plan, settings, path, fixed


@pytest.mark.parametrize("change", [{"code": {"torch": "other"}}, {"asked": "9s"}])
def test_steps_that_another_request_or_other_code_left_are_not_taken(tmp_path, change):
    plan, settings, path, fixed = fixed_to_seven_steps(tmp_path)
    path.write_text(fixed.model_copy(update=change).model_dump_json())
    with pytest.raises(RunError, match="the steps of seed 0 are not known yet"):
        run_seed(plan, 1, settings, patience=0.5)
    path.write_text(fixed.model_dump_json())
    run_seed(plan, 1, settings)
    (path,) = RecordStore(seed_settings(settings).out).paths()
    record = read_record(path)
    assert (record.training.steps, record.budget.rate) == (7, fixed.rate)


def test_the_record_of_a_later_seed_holds(tmp_path):
    """Its steps follow from the rate of the first."""
    plan = resolve(RunSpec(model="lsa", task="least-squares", budget="1s", seeds=(0, 1)))
    settings = Settings(tmp_path, device="cpu")
    for seed in plan.spec.seeds:
        run_seed(plan, seed, settings)
    for path in RecordStore(seed_settings(settings).out).paths():
        assert [check.difference for check in verify(path) if not check.holds] == []


def test_a_merged_budget_is_the_mean_of_the_seeds():
    parts = [BudgetReport(steps=5, core_seconds=c, wall_seconds=2 * c) for c in (2.0, 4.0)]
    merged = _budget(parts)
    assert (merged.core_seconds, merged.wall_seconds) == (3.0, 6.0)


def test_seeds_that_took_other_numbers_of_steps_are_not_merged(tmp_path):
    smoke = {"recipe": "smoke", "seeds": (0, 1), "eval_prompts": 16}
    plan = resolve(RunSpec(model="lsa", task="least-squares", **smoke))
    settings = Settings(tmp_path / "out", device="cpu")
    for seed in plan.spec.seeds:
        run_seed(plan, seed, settings)
    store = RecordStore(seed_settings(settings).out)
    record = store.find(seed_plan(plan, 1).spec)
    training = record.training.model_copy(update={"steps": 7})
    store.write(record.model_copy(update={"training": training}))
    with pytest.raises(RunError, match="different numbers of steps"):
        merge(plan, settings)


def test_trials_and_seeds_of_a_campaign_in_a_folder_below_are_no_rows(tmp_path):
    name = "lsa-0123456789abcdef.json"
    for folder in ("campaign", "campaign/seeds", "campaign/tuning", "campaign/sweeps/one"):
        (tmp_path / folder / "ridge").mkdir(parents=True)
        (tmp_path / folder / "ridge" / name).write_text("{}")
    assert record_paths([tmp_path]) == [tmp_path / "campaign" / "ridge" / name]


def test_folders_of_other_records_with_such_names_are_told(tmp_path):
    path = tmp_path / "seeds" / "ridge" / "lsa-0123456789abcdef.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(UsageError, match="are in folders named seeds or sweeps or tuning"):
        record_paths([tmp_path])
    assert record_paths([tmp_path / "seeds"]) == [path]


def test_seeds_of_the_published_boards_are_not_trained_again(tmp_path):
    plan = resolve(RunSpec(model="lsa", task="least-squares", recipe="smoke", seeds=(0, 1)))
    published, settings = tmp_path / "boards", Settings(tmp_path / "out", device="cpu")
    run_seed(plan, 0, Settings(published, device="cpu"))
    take_seeds(published, settings)
    run_seed(plan, 1, settings)
    merged = merge(plan, settings)
    (together,) = run_plans([plan], Settings(tmp_path / "together", device="cpu"))
    assert merged.training.curve[-1] == pytest.approx(together.training.curve[-1], rel=1e-4)
    # What is there already stays, and a damaged seed is named.
    (path,) = RecordStore(published / SEEDS).paths()
    path.write_text("{}")
    take_seeds(published, settings)
    with pytest.raises(RecordError, match=path.name):
        take_seeds(published, Settings(tmp_path / "other", device="cpu"))


def test_the_first_seed_takes_the_steps_of_those_that_were_trained_elsewhere(tmp_path):
    plan, settings, path, fixed = fixed_to_seven_steps(tmp_path)
    path.write_text(fixed.model_dump_json())
    run_seed(plan, 1, settings, patience=30)
    path.unlink()
    run_seed(plan, 0, settings)
    records = map(read_record, RecordStore(seed_settings(settings).out).paths())
    assert [record.training.steps for record in records] == [7, 7]
    assert merge(plan, settings).budget.rate == fixed.rate


def test_steps_that_vanish_as_the_first_seed_ends_are_read_from_its_record(tmp_path, monkeypatch):
    plan, settings, path, fixed = fixed_to_seven_steps(tmp_path)
    path.write_text(fixed.model_dump_json())

    def ends_meanwhile(asked):
        monkeypatch.undo()
        run_seed(plan, 0, settings)
        return known_steps(asked)

    monkeypatch.setattr(apart, "known_steps", ends_meanwhile)
    run_seed(plan, 1, settings, patience=30)
    records = map(read_record, RecordStore(seed_settings(settings).out).paths())
    assert [record.training.steps for record in records] == [7, 7]
    assert not path.exists()
