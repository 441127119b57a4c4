"""What is left of a campaign's cells: records, tunings and checkpoints, here and published."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from test_campaign import SPACE, campaign, first, folder

from iclbench.runs.settings import Settings
from iclbench.runs.store import RecordStore, read_record
from iclbench.runs.training import checkpoint_path
from iclbench.sweeps.campaign.cell import seconds_left
from iclbench.sweeps.campaign.cells import cells_of
from iclbench.sweeps.campaign.run import run_campaign
from iclbench.training.checkpoints import Checkpoint

__all__ = ["folder"]


def test_a_published_record_that_lacks_a_shift_is_not_trained_again(folder):
    settings = Settings(folder / "out", device="cpu")
    assert run_campaign(campaign(folder, first()), settings) == []
    boards, elsewhere = folder / "boards", Settings(folder / "elsewhere", device="cpu")
    shutil.copytree(settings.out, boards / "records")
    content = campaign(folder, first(fields={"shift": ["noisy"]}))
    content = content.model_copy(update={"published": boards})
    assert seconds_left(cells_of(content, elsewhere)) == 0
    assert run_campaign(content, elsewhere) == []
    (before,) = (settings.out / "least-squares").glob("lsa-*.json")
    after = read_record(elsewhere.out / "least-squares" / before.name)
    assert "noisy" in after.evaluations
    assert after.training == read_record(before).training


def test_a_tuning_with_other_given_arguments_is_not_used(folder):
    """A stage that fixes a shape does not choose it for one that searches."""
    small = {"lsa": {"layers": 1}}
    space = {"optimizers": ["adam"], "schedules": ["cosine"]}
    stages = [first(model_args=small), first(name="free")]
    content = campaign(folder, *stages, trials=2).model_copy(update={"space": {"lsa": space}})
    settings = Settings(folder / "out", device="cpu")
    assert run_campaign(content.only("a"), settings) == []
    cells = [cell for cell in cells_of(content, settings) if cell.model == "lsa"]
    assert [(cell.stage, cell.state) for cell in cells] == [("a", "done"), ("free", "to run")]
    assert cells[1].work.search is not None


def test_a_budget_of_another_device_is_a_failure_of_what_is_to_be_trained(folder):
    """A row that is there is done, wherever it was trained."""
    gpu = campaign(folder, first(fields={"budget": "gpu-1s"}))
    cells = cells_of(gpu, Settings(folder / "out", device="cpu"))
    assert [(cell.model, cell.state) for cell in cells] == [("zero", "to run"), ("lsa", "failed")]
    assert "device time" in cells[1].reason
    content, settings = campaign(folder, first(fields={"budget": "1s"})), Settings(folder / "out")
    assert run_campaign(content, settings) == []
    cells = cells_of(content, replace(settings, device="meta"))
    assert [cell.state for cell in cells] == ["done", "done"]


@pytest.mark.parametrize(
    ("values", "left"), [({"step": 750, "layout": {"steps": 1000}}, 0.25), ({"kept": {}}, 0.0)]
)
def test_hours_do_not_count_what_a_checkpoint_has_done(folder, monkeypatch, values, left):
    content = campaign(folder, first(fields={"budget": "10s"}))
    settings = Settings(folder / "out", device="cpu")
    (cell,) = (cell for cell in cells_of(content, settings) if cell.model == "lsa")
    path = checkpoint_path([cell.plan], settings.out)
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.setattr(Checkpoint, "load_values", lambda path: values)
    assert seconds_left(cells_of(content, settings)) == pytest.approx(left * 2 * 10)


def test_a_file_that_is_no_tuning_is_told_and_stops_nothing(folder, capsys):
    (folder / "out" / "tunings").mkdir(parents=True)
    (folder / "out" / "tunings" / "notes.json").write_text('{"a": 1}')
    cells = cells_of(campaign(folder, first(), trials=2), Settings(folder / "out"))
    assert [cell.state for cell in cells] == ["to run", "to run"]
    told = capsys.readouterr().err
    assert told.count("notes.json") == 1
    assert "left out" in told


def test_a_search_of_no_trial_that_can_run_has_failed_before_it_starts(folder):
    content = campaign(folder, first(), trials=2)
    space = {"lsa": {**SPACE, "model_args": {"layers": [-1]}}}
    cells = cells_of(content.model_copy(update={"space": space}), Settings(folder / "out"))
    assert cells[1].state == "failed"
    assert "layers" in cells[1].reason


def test_what_is_published_is_done(folder):
    entry = {"file": str(folder / "sweep.toml"), "out": "study"}
    stages = [first(), {"name": "s", "summary": "a sweep", "sweep": [entry]}]
    content, settings = campaign(folder, *stages, trials=2), Settings(folder / "out")
    assert run_campaign(content, settings) == []
    boards = folder / "boards"
    shutil.copytree(settings.out / "least-squares", boards / "records" / "least-squares")
    shutil.copytree(settings.out / "tunings", boards / "tunings")
    shutil.copytree(settings.out / "sweeps" / "study", boards / "studies" / "study")
    elsewhere = Settings(folder / "elsewhere")
    assert not any(cell.state == "done" for cell in cells_of(content, elsewhere))
    published = content.model_copy(update={"published": boards})
    cells = cells_of(published, elsewhere)
    assert [cell.reason for cell in cells if cell.state != "done"] == []
    assert all(cell.state == "done" for cell in cells)
    (trained,) = (cell.plan for cell in cells if cell.plan and cell.plan.recipe)
    RecordStore(boards / "records").path(trained.spec).unlink()
    waiting = [cell for cell in cells_of(published, elsewhere) if cell.state != "done"]
    # The tuning is still there, so only the training is left.
    assert [(cell.model, cell.work.trials) for cell in waiting] == [("lsa", 0)]


def test_hours_are_those_of_the_budgets_that_are_left(folder):
    fields = {"budget": "10m", "seeds": 3}
    content = campaign(folder, first(fields=fields), trials=2)
    cells = cells_of(content, Settings(folder / "out"))
    # Two trials of a tenth, and three seeds.
    assert seconds_left(cells) == pytest.approx(60 * (2 * 1 + 3 * 10))


def test_the_trials_of_a_search_that_two_cells_share_count_once(folder):
    fields = {"budget": "10m", "seeds": 3}
    stages = (first(fields=fields), first(name="b", fields={**fields, "seeds": 2}))
    cells = cells_of(campaign(folder, *stages, trials=2), Settings(folder / "out"))
    assert seconds_left(cells) == pytest.approx(60 * (2 * 1 + 3 * 10 + 2 * 10))
    # Each of them may be the one that runs the trials.
    assert [cell.seconds_left for cell in cells[-2:]] == pytest.approx([60 * 32, 60 * 22])
