"""Arguments in words: texts of plugins, those of the harness, and what has no words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iclbench.api.about import AboutFile
from iclbench.api.budget import Budget
from iclbench.api.config import parse_config
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.wording import axis, duration, setting, settings

ROOT = Path(__file__).parents[2]
WORDS = {
    "examples": "N = {}",
    "noise": {"0.0": "", "*": "noise {}"},
    "form": {"gd": "tied to descent"},
    "digest": "",
}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("examples", 20, "N\u00a0=\u00a020"),
        ("examples", [2, 3, 4, 9], "N\u00a0=\u00a02-4,9"),
        ("noise", 0.0, ""),
        ("noise", 0.25, "noise 0.25"),
        ("noise", 10.0, "noise 10"),
        ("form", "gd", "tied to descent"),
        ("form", "free", "form=free"),
        ("digest", "c9da85", ""),
        ("unknown", None, "unknown=null"),
        # The harness's own sequence model.
        ("layers", 1, "1 layer"),
        ("layers", 3, "3 layers"),
        ("layer_norm", False, "no LayerNorm"),
    ],
)
def test_a_setting_in_words(name, value, text):
    assert setting(WORDS, name, value) == text


def test_what_is_null_or_not_worth_saying_is_left_out():
    arguments = {"examples": 8, "noise": 0.0, "task_seed": 0, "condition_number": None, "x": True}
    assert settings(WORDS, arguments) == "N\u00a0=\u00a08, x=true"
    assert settings(WORDS, {"task_seed": 3}) == "task seed 3"


def test_an_axis_is_called_without_a_value():
    assert axis(WORDS, "examples") == "N"
    assert axis(WORDS, "layers") == "layers"
    assert axis(WORDS, "noise") == "noise"
    assert axis(WORDS, "step_size") == "step size"


def test_a_tasks_own_words_come_before_those_of_its_file():
    about = Descriptions(pytest.fail)
    assert about.task("least-squares").settings({"dim": 5, "examples": 20, "target": "query"}) == (
        "D\u00a0=\u00a05, N\u00a0=\u00a020"
    )
    file = parse_config(
        AboutFile,
        {
            "arguments": {"dim": "D = {}"},
            "tasks": {"t": {"title": "T", "text": "t", "group": "g", "arguments": {"dim": ""}}},
        },
        "about",
    )
    assert {**file.arguments, **file.tasks["t"].arguments} == {"dim": ""}
    assert about.task("no-such-task").settings({"dim": 5}) == "dim=5"


def test_the_settings_of_published_boards_have_words():
    about = Descriptions(pytest.fail)
    seen = set()
    for path in sorted((ROOT / "leaderboards" / "records").glob("*/*.json")):
        if path.name.endswith(".heldout.json"):
            continue
        record = json.loads(path.read_text("utf-8"))
        arguments = record["evaluations"]["main"]["task_args"]
        said = about.task(record["spec"]["task"]).settings(arguments)
        seen.add(said)
        # A name of the code stands before its value without a space.
        assert "=" not in said.replace("\u00a0=\u00a0", ""), said
    assert len(seen) > 10


def test_the_time_of_a_budget_is_in_words():
    assert duration(Budget.parse("gpu-1h"), "GPU") == "1 GPU hour"
    assert duration(Budget.parse("90s")) == "90 seconds"
