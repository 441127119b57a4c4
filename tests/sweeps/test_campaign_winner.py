"""The winner of a stage may be a model that an earlier stage has too."""

from __future__ import annotations

from iclbench.runs.settings import Settings
from iclbench.sweeps.campaign.cells import cells_of
from iclbench.sweeps.campaign.files import Campaign

SUITE = """
name = "tiny"
version = 1
summary = "a small regression"
[defaults]
recipe = "smoke"
seeds = 2
eval_prompts = 32
chance = "zero"
[[board]]
name = "plain"
task = "least-squares"
task_args = { dim = 2, examples = 4 }
"""


def test_models_of_an_earlier_stage_are_candidates_too(tmp_path):
    (tmp_path / "tiny.toml").write_text(SUITE)
    suite = {"summary": "", "suite": str(tmp_path / "tiny.toml")}
    stages = [
        {"name": "one", "models": ["transformer"], **suite},
        {"name": "two", "models": ["transformer", "gru"], **suite},
        {"name": "three", "winner_of": "two", **suite},
    ]
    whole = Campaign.model_validate({"trials": 2, "stage": stages})
    cells = cells_of(whole, Settings(tmp_path / "out"))
    assert [cell.model for cell in cells if cell.stage != "three"] == ["zero", "transformer", "gru"]
    for content in (whole, whole.only("three")):
        waiting = cells_of(content, Settings(tmp_path / "out"))[-1]
        assert waiting.reason == "2 models of two not tuned"


def test_a_winner_waits_for_a_model_that_cannot_be_tuned_yet(tmp_path):
    """Once its arguments are mended, it may win."""
    (tmp_path / "tiny.toml").write_text(SUITE)
    suite = {"summary": "", "suite": str(tmp_path / "tiny.toml")}
    stages = [
        {"name": "two", "models": ["transformer", "gru"], "model_args": {"gru": {"widht": 1}},
         **suite},
        {"name": "three", "winner_of": "two", **suite},
    ]  # fmt: skip
    campaign = Campaign.model_validate({"trials": 2, "stage": stages})
    winner = cells_of(campaign, Settings(tmp_path / "out"))[-1]
    assert (winner.state, winner.board) == ("waiting", "plain")
    assert winner.reason.startswith("gru can't be tuned: ")
