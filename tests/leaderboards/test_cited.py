"""Cited rows: the file of published results, and the one that is shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from iclbench import UsageError, host
from iclbench.leaderboards.cited import Cited, read_cited

ROOT = Path(__file__).parents[2]
ENTRY = """
[[cited]]
task = "least-squares"
model = "transformer"
metric = "mean squared error"
value = 1.5e-13
setting = "D = 5"
differs = "nothing"
source = "Figure 1"
"""


def test_the_shipped_rows_are_of_tasks_that_exist():
    by_task = read_cited(ROOT / "leaderboards")
    assert set(by_task) <= {entry.name for _, entry in host().entries("task")}
    values = {entry.value for entries in by_task.values() for entry in entries}
    assert {1.5e-13, 1e-7} <= values


def test_without_a_file_nothing_is_cited(tmp_path):
    assert read_cited(tmp_path) == {}


def test_a_value_says_whether_it_is_approximate():
    entry = Cited(task="a", model="b", metric="c", value=1e-7, setting="d", differs="e", source="f")
    assert entry.text == "1e-07"
    assert entry.model_copy(update={"approximate": True}).text == "≈ 1e-07"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY.replace("value = 1.5e-13", "value = -1"), "greater than 0"),
        (ENTRY.replace("source", "sources"), "sources"),
        (ENTRY.replace('"least-squares"', '"../up"'), "not the name of a task"),
        (ENTRY.replace('"least-squares"', '"leest-squares"'), "did you mean 'least-squares'"),
        (ENTRY.replace("[[", "[[["), "cited.toml"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_with_the_reason(cli, built, tmp_path, text, message):
    (tmp_path / "records").symlink_to(built / "records")
    (tmp_path / "cited.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_cited(tmp_path)
    outcome = cli("leaderboard", "build", tmp_path)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "README.md").exists()


def test_show_prints_what_is_cited_for_the_boards_that_it_shows(cli, built, tmp_path):
    (tmp_path / "records").symlink_to(built / "records")
    other = ENTRY.replace('"least-squares"', '"gradient"')
    (tmp_path / "cited.toml").write_text(ENTRY + other)
    shown = cli("leaderboard", "show", tmp_path, "--task", "least-squares").out
    assert shown.rstrip().endswith(
        "cited for least-squares, not verified here and not ranked:\n"
        "- transformer: mean squared error 1.5e-13 (D = 5). Differs: nothing. Source: Figure 1."
    )
    assert "cited for gradient" not in shown
    as_data = cli("leaderboard", "show", tmp_path, "--task", "least-squares", "--format", "csv")
    assert as_data.code == 0
    assert "1.5e-13 (D" not in as_data.out
    # A folder of results has no such file beside it.
    (tmp_path / "results").symlink_to(built / "records")
    assert "cited" not in cli("leaderboard", "show", tmp_path / "results").out
