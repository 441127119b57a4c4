"""Boards: which records are comparable, their order and their ranks."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import iclbench
from iclbench import RecordError, RecordStore, run
from iclbench.display.boards import board_table
from iclbench.display.formats import as_markdown
from iclbench.leaderboards.board import boards
from iclbench.runs.store import read_record

TINY = {"task": "least-squares", "recipe": "smoke", "eval_prompts": 256}


def test_comparable_records_share_a_board(leaderboards):
    all_boards = iclbench.leaderboard(leaderboards / "records")
    assert [(b.task, b.dtype, len(b.rows)) for b in all_boards] == [
        ("categorical", "float32", 1),
        ("least-squares", "float32", 5),
        ("least-squares", "float64", 2),
        ("least-squares-prefixes", "float32", 1),
    ]


def test_rows_without_a_significant_difference_share_a_rank(tmp_path):
    spec = {**TINY, "eval_prompts": 512, "model": "baseconv", "seeds": 5, "out": tmp_path}
    for deviation in (0.02, 0.0200001, 1.0):
        run(**spec, recipe_args={"steps": 1}, model_args={"init_std": deviation})
    (board,) = iclbench.leaderboard(tmp_path)
    ranks = {row.record.spec.model_args["init_std"]: str(row.rank) for row in board.rows}
    assert ranks == {0.02: "1–2", 0.0200001: "1–2", 1.0: "3"}


def test_a_diverged_model_has_no_rank_beside_one_that_learned(tmp_path):
    spec = {**TINY, "seeds": 2, "model": "baseconv"}
    run(**spec, out=tmp_path)
    run(**spec, recipe_args={"optimizer": "sgd", "learning_rate": 1e12}, out=tmp_path)
    (board,) = iclbench.leaderboard(tmp_path)
    assert [row.unranked for row in board.rows] == ["alone", "diverged"]
    assert [row.diverged for row in board.rows] == [0, 2]
    assert "2 diverged" in as_markdown(board_table(board))


def test_a_board_has_its_task_s_title(changed):
    def with_title(record):
        main = record.main.model_copy(update={"title": "least-squares: a stand-in"})
        return record.model_copy(update={"evaluations": {"main": main}})

    board = changed(with_title)
    assert (board.task, board.title) == ("least-squares", "least-squares: a stand-in")
    assert board.description.startswith("least-squares: a stand-in v2 (dim=2, examples=4")
    assert "64 prompts, ranked by its mean digits" in board.description


def test_other_evaluations_are_other_boards(tmp_path):
    for changes in ({}, {"eval_seed": 1}, {"task_args": {"dim": 4}}):
        run(model="zero", **TINY, **changes, out=tmp_path)
    assert len(iclbench.leaderboard(tmp_path)) == 3


def test_tables_do_not_depend_on_the_order_of_records(leaderboards):
    store = RecordStore(leaderboards / "records")
    records = [read_record(path) for path in store.paths()]
    texts = {
        "\n".join(as_markdown(board_table(b)) for b in boards(order, store))
        for order in (records, records[::-1])
    }
    assert len(texts) == 1


def test_a_damaged_record_is_an_error(tmp_path):
    record = run(model="zero", **TINY, out=tmp_path)
    RecordStore(tmp_path).path(record.spec).write_text("{")
    with pytest.raises(RecordError):
        iclbench.leaderboard(tmp_path)


def test_the_python_of_the_page_works(leaderboards, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "leaderboards.md"
    (text,) = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    shutil.copytree(leaderboards / "records", tmp_path / "leaderboards" / "records")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(text, page.name, "exec"), names)
    columns = list(names["table"].columns)
    assert len(columns) > 70
    # Every column has a line there, on its own or in a range, or is a record's field.
    told = page.with_name("reading_boards.md").read_text("utf-8")
    told += page.with_name("records.md").read_text("utf-8")
    unknown = [name for name in columns if f"`{name}`" not in told]
    assert [n for n in unknown if not re.fullmatch(r"solved_to_\d+|q\d\d|median", n)] == []


def test_values_that_do_not_fit_into_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    record = run(model="zero", task="least-squares", eval_prompts=32, out=tmp_path)
    monkeypatch.setattr("iclbench.devices.machine_memory", lambda: 100)
    boards([record], RecordStore(tmp_path))
    monkeypatch.setattr("iclbench.leaderboards.board.SURELY_THERE", 10)
    with pytest.raises(RecordError, match=r"the values of 1 record need .* of memory"):
        boards([record], RecordStore(tmp_path))
