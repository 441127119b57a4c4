"""Shifts are no part of a run, and a sweep, a campaign and merged seeds have them all the same."""

from __future__ import annotations

from iclbench import RecordStore, RunSpec, sweep, sweep_status
from iclbench.runs.plan import resolve
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record
from iclbench.sweeps.campaign.apart import merge, run_seed
from iclbench.sweeps.campaign.cells import cells_of
from iclbench.sweeps.campaign.files import Campaign
from iclbench.sweeps.files import read_sweep_file
from iclbench.sweeps.sweep import plan_sweep, recorded

TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke",
        "recipe_args": {"steps": 3}, "seeds": 2, "eval_prompts": 32}  # fmt: skip


def held(out):
    """The evaluations of every record in a folder."""
    return [sorted(read_record(path).evaluations) for path in RecordStore(out).paths()]


def test_a_sweep_adds_shifts_to_records_that_exist(tmp_path):
    grid = {"model": ["zero", "baseconv"]}
    sweep({"defaults": TINY, "grid": [grid]}, out=tmp_path)
    shifted = {"defaults": {**TINY, "shift": ["quadrants"]}, "grid": [grid]}
    added = sweep(shifted, out=tmp_path)
    assert (added.failures, len(added.records)) == ([], 2)
    assert held(tmp_path) == [["main", "quadrants"]] * 2
    lines = []
    sweep(shifted, out=tmp_path, report=lines.append)
    assert "2 runs: 2 skipped, 0 to run" in lines


def test_a_run_of_two_grids_has_the_shifts_of_both(tmp_path):
    grids = [{"model": ["averaging", "zero"]}, {"model": "zero", "shift": ["quadrants"]},
             {"model": "zero", "shift": ["skewed"]}]  # fmt: skip
    result = sweep({"defaults": TINY, "grid": grids}, out=tmp_path)
    assert (result.failures, len(result.records)) == ([], 2)
    assert held(tmp_path) == [["main"], ["main", "quadrants", "skewed"]]
    assert [one.state for one in sweep_status({"defaults": TINY, "grid": grids}, out=tmp_path).cells
            ] == ["done"] * 2  # fmt: skip


def test_a_later_stage_s_run_of_an_earlier_one_adds_its_shifts(tmp_path):
    """The grid of a stage that waits for weights names a run that is done by then."""
    grids = [{"model": "baseconv", "name": "first"}, {"model": "zero"},
             {"model": "baseconv", "init": "@first"},
             {"model": "zero", "shift": ["quadrants"]}]  # fmt: skip
    result = sweep({"defaults": {**TINY, "seeds": 1}, "grid": grids}, out=tmp_path)
    assert result.failures == []
    assert ["main", "quadrants"] in held(tmp_path)


def test_a_sweep_names_a_shift_that_is_not_defined(tmp_path):
    result = sweep({"defaults": {**TINY, "shift": ["nosuch"]}, "grid": [{"model": "zero"}]},
                   out=tmp_path)  # fmt: skip
    (failure,) = result.failures
    assert "unknown shift 'nosuch'" in failure.reason


def test_a_cell_of_a_campaign_without_its_shifts_is_not_done(tmp_path):
    suite = tmp_path / "tiny.toml"
    suite.write_text(
        'name = "tiny"\nversion = 1\nsummary = "one"\n[defaults]\neval_prompts = 32\n'
        'chance = "zero"\n[[board]]\nname = "plain"\ntask = "least-squares"\n'
        "task_args = { dim = 2, examples = 4 }\n"
    )
    stage = {"name": "one", "summary": "", "suite": str(suite), "models": ["averaging"],
             "fields": {"shift": ["quadrants"]}}  # fmt: skip
    campaign = Campaign.model_validate({"trials": 0, "stage": [stage]})
    args = {"model": "averaging", "task": "least-squares", "eval_prompts": 32,
            "task_args": TINY["task_args"]}  # fmt: skip

    def state():
        return cells_of(campaign, Settings(tmp_path))[-1].state

    sweep({"grid": [args]}, out=tmp_path)
    assert state() == "to run"
    sweep({"grid": [{**args, "shift": ["quadrants"]}]}, out=tmp_path)
    assert state() == "done"
    stages = [{**stage, "fields": {}}, stage, {**stage, "fields": {"shift": ["skewed"]}}]
    for i, one in enumerate(stages):
        one["name"] = str(i)
    campaign = Campaign.model_validate({"trials": 0, "stage": stages})
    (cell,) = [c for c in cells_of(campaign, Settings(tmp_path)) if c.model == "averaging"]
    assert (cell.state, cell.plan.request.shift) == ("to run", ("quadrants", "skewed"))


def test_merged_seeds_are_evaluated_under_the_shifts_that_were_asked_for(tmp_path):
    plan = resolve(RunSpec(model="baseconv", **{**TINY, "shift": ("quadrants",)}))
    settings = Settings(tmp_path, device="cpu")
    for seed in plan.spec.seeds:
        run_seed(plan, seed, settings)
    assert sorted(merge(plan, settings).evaluations) == ["main", "quadrants"]
    assert held(tmp_path) == [["main", "quadrants"]]


def test_status_plan_and_figures_agree_about_missing_shifts(tmp_path):
    grid = {"model": ["zero", "averaging"]}
    sweep({"defaults": TINY, "grid": [grid]}, out=tmp_path)
    shifted = {"defaults": {**TINY, "shift": ["quadrants"]}, "grid": [grid]}
    assert [one.state for one in sweep_status(shifted, out=tmp_path).cells] == ["not begun"] * 2
    _, programs = plan_sweep(shifted, out=tmp_path)
    assert sum(map(len, programs)) == 2
    # Figures without shifts draw what is there.
    assert len(recorded(read_sweep_file(shifted), tmp_path).records) == 2
    sweep(shifted, out=tmp_path)
    assert [one.state for one in sweep_status(shifted, out=tmp_path).cells] == ["done"] * 2
    assert plan_sweep(shifted, out=tmp_path)[1] == []
