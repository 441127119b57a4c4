"""The jobs of a campaign's cells."""

from __future__ import annotations

from test_campaign import campaign, first, folder

from iclbench.runs.settings import Settings
from iclbench.sweeps.campaign.cell import CampaignCell
from iclbench.sweeps.campaign.cells import cells_of
from iclbench.sweeps.campaign.run import before_waiting, one_per_search, run_campaign, run_cell
from iclbench.sweeps.jobs import settings_json

__all__ = ["folder"]


def test_a_job_that_fails_returns_the_reason(folder):
    job = {**settings_json(Settings(folder / "out", "cpu")), "until": None, "patience": 0.0,
           "seconds": 0.0, "does": "run", "request": {"model": "lsa", "task": "nothing"},
           "tuning": None, "search": None}  # fmt: skip
    assert "nothing" in str(run_cell(job))


def test_cells_run_with_the_settings_of_the_campaign(folder, monkeypatch):
    seen: list[Settings] = []
    monkeypatch.setattr(
        "iclbench.sweeps.campaign.run.run_plans", lambda _, given: seen.append(given)
    )
    settings = Settings(folder / "out", "cpu", checkpoint_seconds=5.0, eval_batch=16)
    run_campaign(campaign(folder, first(models=["zero"])), settings)
    assert seen == [settings]


def test_cells_that_share_a_search_are_not_run_at_the_same_time(folder):
    """Two processes can't run one search: the second cell takes the tuning of the first."""
    stages = (first(), first(name="b", fields={"seeds": 3}), first(name="c", models=["elsa"]))
    cells = cells_of(campaign(folder, *stages, trials=2), Settings(folder / "out"))
    names = [(cell.stage, cell.model) for cell in one_per_search(cells)]
    assert ("a", "lsa") in names
    assert ("b", "lsa") not in names
    assert ("c", "elsa") in names


def test_a_failure_of_a_cell_that_is_done_at_the_end_is_forgotten(folder, monkeypatch):
    """Another process had its search, and then wrote its record."""
    content, settings = campaign(folder, first()), Settings(folder / "out")

    def fail_after(job):
        run_cell(job)
        return "another process is running this search"

    monkeypatch.setattr("iclbench.sweeps.campaign.run.run_cell", fail_after)
    assert run_campaign(content, settings) == []


def test_what_waits_has_its_turn_before_later_stages(folder):
    stages = [
        first(models=["lsa"]),
        {"name": "b", "summary": "two", "winner_of": "a", "boards": ["plain"],
         "fields": {"seeds": 3}},
        first(name="c", models=["elsa"]),
    ]  # fmt: skip
    lines: list[str] = []
    content = campaign(folder, *stages, trials=1)
    assert run_campaign(content, Settings(folder / "out"), report=lines.append) == []
    assert lines == [
        "[1/4] a: zero on plain: done", "[2/4] a: lsa on plain: done",
        "[3/4] b: lsa on plain: done", "[4/4] c: elsa on plain: done"]  # fmt: skip


def test_what_waits_in_vain_changes_no_order():
    cells = [
        CampaignCell("a", "plain", "first", "waiting"),
        CampaignCell("a", "plain", "lsa", "to run"),
        CampaignCell("b", "plain", "the best of a", "waiting"),
        CampaignCell("b", "systems", "elsa", "to run"),
        CampaignCell("c", "plain", "gru", "to run"),
    ]
    missing = [cell for cell in cells if cell.state == "to run"]
    assert [cell.model for cell in before_waiting(cells, missing)] == ["lsa"]
    assert [cell.model for cell in before_waiting(cells, missing[1:])] == ["elsa"]
    assert before_waiting(cells, missing[2:]) == missing[2:]
