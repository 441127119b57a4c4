"""Leaderboards: ranked from records alone, ties by paired comparison, the floor is a row."""

from __future__ import annotations

import numpy as np
import pytest

import iclbench
from iclbench import RecordError, RecordStore, run
from iclbench.leaderboards.tables import boards, render

TINY = {"task": "least-squares", "recipe": "smoke", "eval_prompts": 256}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    run(model="zero", **TINY, out=out)
    run(model="least-squares-qr", **TINY, out=out)
    run(model="least-squares-qr", **TINY, dtype="float64", out=out)
    run(model="ridge", **TINY, model_args={"ridge": 1.0}, out=out)
    run(model="ridge", **TINY, model_args={"ridge": 10.0}, out=out)
    run(model="baseconv", **TINY, seeds=2, out=out)
    return out


@pytest.fixture(scope="module")
def board(folder):
    found = iclbench.leaderboard(folder)
    assert [b.records[0].spec.dtype for b in found] == ["float32", "float64"]
    return found[0]


def test_rows_are_ranked_by_the_task_s_statistic(board):
    medians = board.rows["median"].tolist()[1:]
    assert medians == sorted(medians)
    assert board.rows["rank"].tolist()[1] == "1"


def test_the_floor_is_a_row_that_is_not_ranked(board):
    floor = board.rows.iloc[0]
    assert (floor["model"], floor["origin"], floor["rank"]) == ("floor", "floor", "")
    assert floor["median"] == board.records[0].floor["squared_error"].median


def test_rows_of_one_model_are_told_apart(board):
    models = set(board.rows["model"])
    assert {"ridge ridge=1.0", "ridge ridge=10.0", "zero", "least-squares-qr"} <= models


def test_origin_seeds_and_parameters_are_shown(board):
    rows = board.rows.set_index("model")
    assert rows.loc["baseconv", ["origin", "seeds"]].tolist() == ["trained", "2"]
    assert "…" in rows.loc["baseconv", "spread"]
    assert rows.loc["zero", ["origin", "seeds", "parameters"]].tolist() == ["solver", "", "0"]


def test_digits_are_those_of_the_median(board):
    for _, row in board.rows.iterrows():
        assert row["digits"] == pytest.approx(-np.log10(row["median"]))


def test_rows_that_cannot_be_told_apart_share_a_rank(folder, tmp_path):
    for ridge in (1.0, 1.0000001, 10.0):
        run(model="ridge", **TINY, model_args={"ridge": ridge}, out=tmp_path)
    (board,) = iclbench.leaderboard(tmp_path)
    assert board.rows["rank"].tolist() == ["", "1=", "1=", "3"]


def test_a_diverged_model_shares_no_rank_with_one_that_is_finite(tmp_path):
    spec = {**TINY, "seeds": 2, "model": "baseconv"}
    run(**spec, out=tmp_path)
    run(**spec, recipe_args={"optimizer": "sgd", "learning_rate": 1e12}, out=tmp_path)
    (board,) = iclbench.leaderboard(tmp_path)
    assert board.rows["rank"].tolist() == ["", "1", "2"]
    assert board.rows["origin"].tolist()[2] == "trained, 2 diverged"


def test_other_evaluations_are_other_boards(folder, tmp_path):
    for changes in ({}, {"eval_seed": 1}, {"task_args": {"dim": 4}}):
        run(model="zero", **TINY, **changes, out=tmp_path)
    assert len(iclbench.leaderboard(tmp_path)) == 3


def test_the_table_does_not_depend_on_the_order_of_records(folder):
    store = RecordStore(folder)
    records = [iclbench.runs.store.read_record(path) for path in store.paths()]
    texts = {
        "\n".join(render(b) for b in boards(order, store)) for order in (records, records[::-1])
    }
    assert len(texts) == 1


def test_the_table_shows_what_it_must(board):
    text = render(board)
    for column in ("rank", "model", "median", "mean", "95% interval", "digits", "seeds",
                   "over seeds", "parameters", "origin", "time"):  # fmt: skip
        assert column in text
    assert "least-squares v1" in text
    assert "256 prompts" in text


def test_a_damaged_record_is_not_left_out_in_silence(folder, tmp_path):
    record = run(model="zero", **TINY, out=tmp_path)
    RecordStore(tmp_path).path(record.spec).write_text("{")
    with pytest.raises(RecordError):
        iclbench.leaderboard(tmp_path)
