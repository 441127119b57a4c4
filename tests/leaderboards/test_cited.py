"""Cited rows: the file of published results, and the one that is shipped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from iclbench import UsageError, host
from iclbench.leaderboards.build import build
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


def test_a_task_of_the_boards_may_have_several_rows_and_need_not_be_installed(tmp_path):
    row = ENTRY.replace('"least-squares"', '"my-task"')
    (tmp_path / "cited.toml").write_text(row + row, "utf-8")
    assert len(read_cited(tmp_path, (name for name in ["my-task"]))["my-task"]) == 2


def test_a_value_says_whether_it_is_approximate():
    entry = Cited(task="a", model="b", metric="c", value=1e-7, setting="d", differs="e", source="f")
    assert entry.text == "1e-07"
    assert entry.model_copy(update={"approximate": True}).text == "≈ 1e-07"


def test_an_error_has_digits_that_a_board_s_can_be_compared_with():
    entry = Cited(task="a", model="b", metric="c", value=1e-7, setting="d", differs="e",
                  source="f", error="squared", approximate=True)  # fmt: skip
    assert entry.text == "≈ 1e-07, ≈ 3.5 digits of the mean"
    exact = entry.model_copy(update={"error": "absolute", "approximate": False})
    assert exact.text == "1e-07, 7.0 digits of the mean"


def test_a_source_with_an_address_is_a_link_on_pages(built, tmp_path):
    folder = tmp_path / "boards"
    shutil.copytree(built / "records", folder / "records")
    (folder / "cited.toml").write_text(f'{ENTRY}url = "https://example.org/paper"\n')
    build(folder)
    page = (folder / "tasks" / "least-squares.md").read_text("utf-8")
    assert "[Figure 1](https://example.org/paper)" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{ENTRY}url = "javascript:alert(1)"', "url"),
        (f'{ENTRY}url = "https://a.org/)[x](javascript:alert(1)"', "url"),
        (ENTRY.replace("Figure 1", "a\\u001b[31m"), "invisible"),
        (ENTRY.replace("Figure 1", "a\\n\\n# b"), "invisible"),
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
