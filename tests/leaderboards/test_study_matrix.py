"""A study of several tasks as a matrix of models by tasks."""

from __future__ import annotations

import pytest

from iclbench import RecordStore, sweep
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.reading import sound_boards
from iclbench.leaderboards.site.study_matrix import study_matrix

TASKS = ["in-context-recall", "noisy-recall", "fuzzy-recall"]


@pytest.fixture(scope="module")
def boards(tmp_path_factory):
    out = tmp_path_factory.mktemp("recall")
    grids = [
        {"model": ["uniform", "lookup"], "task": TASKS[:2]},
        {"model": "uniform", "task": TASKS[2]},
        {"model": "gru", "task": TASKS[2], "recipe_args": {"steps": 2, "batch": 2}},
    ]
    sweep({"defaults": {"eval_prompts": 16}, "grid": grids}, out=out)
    return sound_boards(RecordStore(out), pytest.fail, whole=True)


def test_every_model_has_its_score_on_every_task(boards):
    matrix = study_matrix(boards, Descriptions(pytest.fail))
    assert [column["task"] for column in matrix["columns"]] == sorted(TASKS)
    _, lookup, uniform = sorted(matrix["rows"], key=lambda row: row["title"])
    assert [cell and cell["text"] for cell in lookup["cells"]] == [None, "1.000", "1.000"]
    assert all(cell["percent"] == 0 for cell in uniform["cells"])


def test_a_column_has_the_same_decimals_in_every_line(boards):
    matrix = study_matrix(boards, Descriptions(pytest.fail))
    for column, cells in zip(
        matrix["columns"], zip(*(row["cells"] for row in matrix["rows"]), strict=True), strict=True
    ):
        texts = [column["best"], column["chance"], *(cell["text"] for cell in cells if cell)]
        assert len({len(text.partition(".")[2]) for text in texts}) == 1, texts


def test_origins_are_told_apart(boards):
    """A trained model never stands among solvers, and comes first."""
    matrix = study_matrix(boards, Descriptions(pytest.fail))
    kinds = [(row["mark"], row["kind"], row["title"]) for row in matrix["rows"]]
    assert kinds[0] == ("●", "trained, open", "GRU")
    assert {kind[:2] for kind in kinds[1:]} == {("▲", "solver")}
    assert [cell is None for cell in matrix["rows"][0]["cells"]] == [False, True, True]


def test_few_tasks_need_none(boards):
    assert study_matrix(boards[:2], Descriptions(pytest.fail)) is None
