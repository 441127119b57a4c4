"""Campaigns: what they consist of, in which order, what is left, and running them in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iclbench import RecordStore, UsageError
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record
from iclbench.runs.verify import verify
from iclbench.sweeps.campaign.cell import CampaignCell, seconds_left
from iclbench.sweeps.campaign.cells import cells_of
from iclbench.sweeps.campaign.files import Campaign, read_campaign
from iclbench.sweeps.campaign.run import NO_HOURS, run_campaign

ROOT = Path(__file__).parents[2]

SUITE = """
name = "tiny"
version = 1
summary = "two small regressions"
[defaults]
recipe = "smoke"
seeds = 2
eval_prompts = 32
chance = "zero"
[[board]]
name = "plain"
task = "least-squares"
task_args = { dim = 2, examples = 4 }
[[board]]
name = "systems"
task = "linear-system"
task_args = { sizes = 2 }
"""

SWEEP = """
[defaults]
task = "least-squares"
task_args = { dim = 2, examples = 4 }
recipe = "smoke"
eval_prompts = 32
[[grid]]
name = "first"
model = "lsa"
seeds = 1
[[grid]]
model = "lsa"
weights = "@first"
[[grid]]
model = "zero"
"""

#: What replaces the search of a model, so that trials take no time.
SPACE = {"optimizers": ["adam"], "schedules": ["cosine"], "model_args": {"layers": [0, 1]}}


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "tiny.toml").write_text(SUITE)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    return tmp_path


def campaign(folder: Path, *stages: dict[str, Any], trials: int = 0) -> Campaign:
    for stage in stages:
        if "models" in stage or "winner_of" in stage:
            stage.setdefault("suite", str(folder / "tiny.toml"))
    space = {"lsa": SPACE} if "lsa" in str(stages) else {}
    return Campaign.model_validate({"trials": trials, "space": space, "stage": stages})


def first(**changes: Any) -> dict[str, Any]:
    return {"name": "a", "summary": "one", "models": ["lsa"], "boards": ["plain"], **changes}


def states(cells: list[CampaignCell]) -> list[tuple[str, str, bool]]:
    return [(cell.board, cell.model, cell.state == "done") for cell in cells]


def test_of_several_models_the_first_runs_that_can_do_a_board(folder):
    models = [["lsa", "lsa-tokens"], "elsa"]
    cells = cells_of(campaign(folder, first(models=models, boards=None)), Settings(folder / "out"))
    assert [(cell.board, cell.model) for cell in cells] == [
        ("plain", "zero"), ("plain", "lsa"), ("plain", "elsa"),
        ("systems", "zero"), ("systems", "lsa-tokens"), ("systems", "elsa"),
    ]  # fmt: skip
    assert cells[-1].state == "unsupported"
    assert not cells[-1].to_run


def test_boards_come_in_the_order_in_which_a_stage_names_them(folder):
    cells = cells_of(
        campaign(folder, first(models=["transformer"], boards=["systems", "plain"])),
        Settings(folder / "out"),
    )
    assert list(dict.fromkeys(cell.board for cell in cells)) == ["systems", "plain"]


def test_a_cell_is_tuned_and_run_once_and_is_done_then(folder):
    settings, content = Settings(folder / "out"), campaign(folder, first(), trials=2)
    lines: list[str] = []
    assert cells_of(content, settings)[1].work.trials == 2
    assert run_campaign(content, settings, report=lines.append) == []
    assert [line.split(" ", 1)[1] for line in lines] == [
        "a: zero on plain: done", "a: lsa on plain: done"]  # fmt: skip
    cells = cells_of(content, settings)
    assert states(cells) == [("plain", "zero", True), ("plain", "lsa", True)]
    store = RecordStore(settings.out)
    before = {path: path.stat().st_mtime_ns for path in store.paths()}
    assert len(before) == 2
    (trained,) = [cell.plan for cell in cells if cell.plan and cell.plan.recipe]
    record = store.find(trained.spec)
    assert record is not None
    assert record.tuning is not None
    run_campaign(content, settings, report=lines.append)
    assert len(lines) == 2
    assert {path: path.stat().st_mtime_ns for path in store.paths()} == before


def test_a_record_that_lacks_shifts_is_evaluated_and_not_trained(folder):
    settings = Settings(folder / "out")
    assert run_campaign(campaign(folder, first()), settings) == []
    content = campaign(folder, first(fields={"shift": ["noisy"]}))
    cells = [cell for cell in cells_of(content, settings) if cell.model == "lsa"]
    assert [(c.state, c.work.adds_shifts, c.seconds_left) for c in cells] == [("to run", True, 0.0)]


def test_without_enough_hours_nothing_starts_and_that_is_no_failure(folder):
    content = campaign(folder, first(fields={"budget": "10m"}))
    lines: list[str] = []
    settings = Settings(folder / "out")
    assert run_campaign(content, settings, hours=0.01, report=lines.append) == []
    # Two seeds of ten minutes.
    assert lines[-1].endswith(f"{NO_HOURS} (0.33)")
    assert states(cells_of(content, settings)) == [("plain", "zero", True), ("plain", "lsa", False)]


@pytest.mark.parametrize(("noise", "best"), [(0.0, max), (0.5, min)])
def test_the_winner_of_a_stage_runs_with_its_tuning(folder, noise, best):
    """With noise, the mean error ranks instead of the mean digits."""
    (folder / "tiny.toml").write_text(
        SUITE.replace("examples = 4", f"examples = 4, noise = {noise}")
    )
    stages = (
        first(models=["lsa", "elsa"]),
        {"name": "b", "summary": "two", "winner_of": "a", "boards": ["plain"],
         "fields": {"seeds": 3}},
    )  # fmt: skip
    content = campaign(folder, *stages, trials=1)
    settings = Settings(folder / "out")
    waiting = cells_of(content, settings)[-1]
    assert waiting.state == "waiting"
    assert run_campaign(content, settings) == []
    *others, winner = cells_of(content, settings)
    assert winner.state == "done"
    assert winner.plan is not None
    assert winner.plan.spec.seeds == (0, 1, 2)
    scores = {
        cell.model: cell.plan.tuning.document["trials"][0]["score"]
        for cell in others
        if cell.plan and cell.plan.tuning
    }
    assert len(scores) == 2
    assert winner.model == best(scores, key=lambda name: scores[name])


def test_a_search_space_of_fewer_points_than_trials_is_tuned_once(folder):
    stages = (first(), {**first(name="b", winner_of="a", models=[]), "fields": {"seeds": 3}})
    one = {**SPACE, "learning_rate": [1e-3, 1e-3], "init_std": [0.1, 0.1], "model_args": {}}
    content = campaign(folder, *stages, trials=3).model_copy(update={"space": {"lsa": one}})
    assert run_campaign(content, Settings(folder / "out")) == []
    cells = cells_of(content, Settings(folder / "out"))
    assert [(c.stage, c.state) for c in cells] == [("a", "done"), ("a", "done"), ("b", "done")]


@pytest.mark.slow
def test_seeds_apart_are_merged_into_one_record_that_verifies(folder):
    stages = (
        first(),
        {"name": "b", "summary": "two", "winner_of": "a", "boards": ["plain"], "apart": True,
         "fields": {"seeds": 3, "budget": "1s"}},
    )  # fmt: skip
    content = campaign(folder, *stages, trials=1)
    settings = Settings(folder / "out", device="cpu")
    assert run_campaign(content, settings) == []
    *_, merged = cells_of(content, settings)
    assert merged.state == "done"
    assert merged.plan is not None
    store, seeds = RecordStore(settings.out), RecordStore(settings.out / "seeds")
    record = store.find(merged.plan.spec)
    assert record is not None
    parts = {r.spec.seeds[0]: r for r in map(read_record, seeds.paths())}
    assert sorted(parts) == [0, 1, 2]
    assert len({part.training.steps for part in parts.values()}) == 1
    assert record.training.curve[0] == [parts[seed].training.curve[0][0] for seed in range(3)]
    for seed, metrics in enumerate(record.main.seeds):
        expected = parts[seed].metrics["squared_error"].mean
        assert metrics["squared_error"].mean == pytest.approx(expected, rel=1e-5)
    checks = verify(store.path(merged.plan.spec), "cpu")
    assert [check.difference for check in checks if not check.holds] == []


def test_a_sweep_is_one_cell_whose_grids_may_wait_for_each_other(folder):
    entry = {"file": folder / "sweep.toml", "out": "sweep", "hours": 0.3}
    content = campaign(folder, {"name": "s", "summary": "sweep", "sweep": [entry]})
    settings = Settings(folder / "out")
    (cell,) = cells_of(content, settings)
    assert (cell.work.runs, seconds_left([cell])) == (3, pytest.approx(0.3 * 3600))
    assert run_campaign(content, settings) == []
    (cell,) = cells_of(content, settings)
    assert cell.state == "done"
    assert len(list(RecordStore(folder / "out" / "sweeps" / "sweep").paths())) == 3


def test_a_failure_is_named_and_stops_no_other_cell(folder):
    entry = {"file": folder / "missing.toml", "out": "sweep"}
    content = campaign(
        folder, {"name": "s", "summary": "sweep", "sweep": [entry]}, first(models=["nobody", "lsa"])
    )
    settings = Settings(folder / "out")
    failures = run_campaign(content, settings)
    assert len(failures) == 2
    assert "missing.toml" in failures[0]
    assert "nobody" in failures[1]
    assert ("plain", "lsa", True) in states(cells_of(content, settings))


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        ([first(), first()], "two stages have the same name"),
        ([first(models=[])], "either models or winner_of"),
        ([first(models=[], winner_of="z")], "no earlier stage is 'z'"),
        ([first(), first(name="b", models=[], winner_of="a")], "winner_of needs trials"),
        ([first(apart=True)], "apart needs winner_of"),
        ([{"name": "s", "summary": "nothing"}], "either a suite or sweeps"),
        ([{"name": "s", "summary": "", "sweep": [{"file": "a", "out": "../b"}]}], "plain name"),
        (
            [{"name": "s", "summary": "", "sweep": [{"file": "a", "out": "b"}] * 2}],
            "the same folder",
        ),
    ],
)
def test_invalid_campaigns_are_refused(folder, stages, reason):
    with pytest.raises(ValueError, match=reason):
        campaign(folder, *stages)


def test_a_stage_is_run_with_those_that_it_needs(folder):
    stages = (first(), first(name="b"), first(name="c", models=[], winner_of="a"))
    content = campaign(folder, *stages, trials=1)
    assert [stage.name for stage in content.only("c").stage] == ["a", "c"]
    with pytest.raises(UsageError, match="unknown stage 'd'"):
        content.only("d")


@pytest.mark.slow
def test_the_campaign_of_the_published_boards_can_be_planned(tmp_path):
    content = read_campaign(ROOT / "leaderboards" / "campaign.toml")
    cells = cells_of(content, Settings(tmp_path))
    assert [cell.reason for cell in cells if cell.state == "failed"] == []
    everything = content.model_copy(update={"published": None})
    assert seconds_left(cells_of(everything, Settings(tmp_path))) > 30 * 3600
    # Rows that are published are those of the plan.
    assert sum(cell.state == "done" for cell in cells) > 10
