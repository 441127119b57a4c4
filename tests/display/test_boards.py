"""Boards as tables: what they show, in the terminal's width and in every format."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from forging import reseal

from iclbench import UsageError, leaderboard, run
from iclbench.console import counted
from iclbench.display.boards import board_table, legend, print_boards
from iclbench.display.overview import overview_table
from iclbench.display.table import Output, cell_of

SMALL = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 64}


@pytest.fixture(scope="module")
def boards(tmp_path_factory):
    """A board with five rows of which two are trained, and another one."""
    out = tmp_path_factory.mktemp("records")
    for layers in (1, 2):
        run(model="baseconv", **SMALL, recipe="smoke", model_args={"layers": layers}, seeds=2,
            out=out)  # fmt: skip
    for model in ("least-squares-qr", "zero"):
        run(model=model, **SMALL, out=out)
    run(model="baseconv", **SMALL, weights="gd-causal", weights_args={"steps": 3}, out=out)
    run(model="class-frequency", task="categorical", eval_prompts=32, out=out)
    return leaderboard(out)


@pytest.fixture
def board(boards):
    return next(b for b in boards if len(b.rows) == 5)


def cells(board) -> dict[str, dict[str, str]]:
    """What a table shows: a line's cells by column, by the line's label."""
    table = board_table(board)
    return {
        cell_of(row["model"]).text: {name: cell_of(cell).text for name, cell in row.items()}
        for row in table.rows
    }


def test_the_floor_is_a_row_without_a_rank(board):
    statistics = board.records[0].floor["squared_error"]
    assert (board.floor.label, board.floor.score) == ("attainable", statistics.digits.mean)
    floor = cells(board)["attainable"]
    assert "origin" not in floor
    assert "rank" not in floor
    assert (floor["median"], floor["1% worst"]) == (f"{statistics.median:.2e}",
                                                    f"{statistics.q99:.2e}")  # fmt: skip


def test_the_table_shows_every_fact(board):
    table = cells(board)
    trained, solver = table["baseconv layers=1"], table["zero"]
    assert (trained["origin"], trained["seeds"]) == ("○ perhaps at chance", "2")
    assert "…" in trained["over seeds"]
    assert (solver["origin"], solver["seeds"], solver["parameters"]) == ("▲ chance", "", "0")
    assert table["least-squares-qr"]["origin"] == "▲ at the floor"
    for row in board.rows:
        line = table[row.label]
        assert line["score"] == f"{row.statistics.digits.mean:.2f}"
        low, _, high, *_ = line["95% interval"].split()
        assert [float(low), float(high)] == pytest.approx(row.bounds[:2], abs=0.006)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_tables_fit_the_terminal_and_say_what_they_leave_out(boards, monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    print_boards(boards)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    heads = [line for line in lines if line.startswith("rank  ")]
    assert len(heads) == len(boards)
    left_out = any("mean error" not in head for head in heads if "digits" in head)
    assert any(line.startswith("not shown:") for line in lines) == left_out


def test_a_name_that_is_too_long_keeps_its_end(board, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "50")
    print_boards([board])
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 50
    assert all(end in text for end in ("ers=1 ", "ers=2 "))


def test_without_a_terminal_tables_have_every_column(boards, capsys):
    print_boards(boards, commands=True)
    text = capsys.readouterr().out
    assert "parameters" in text
    assert "mean error" in text
    assert "not shown" not in text
    assert "    iclbench run --model zero" in text
    assert text.rstrip().endswith("16 in float64.")


def test_the_words_that_stand_for_ranks_are_explained(board):
    explained = " ".join(legend([board]))
    told = {row.unranked or str(row.rank) for row in board.rows if row.is_trained}
    assert told
    for word in told:
        assert f"{word}: " in explained or "–" not in word


def test_columns_and_order_can_be_chosen(board, capsys):
    print_boards([board], Output("csv", "model,digits,low", "-digits"))
    head, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert head == ["model", "score", "low"]
    scores = [float(row[1]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert len(rows) == 6  # with the floor
    with pytest.raises(UsageError, match="unknown column 'modle'; did you mean 'model'"):
        print_boards([board], Output(columns="modle"))
    with pytest.raises(UsageError, match="unknown column"):
        print_boards([board], Output(sort="-modle"))


def test_the_mean_is_that_of_the_metric_where_digits_rank(board, capsys):
    assert board.has_digits
    print_boards([board], Output("csv", "model,mean"))
    head, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert head == ["model", "mean error"]
    (record,) = (r for r in board.records if r.spec.model == "zero")
    (mean,) = (float(mean) for model, mean in rows if model == "zero")
    assert mean == pytest.approx(record.metrics["squared_error"].mean)
    print_boards([board], Output("table", "model,mean"))
    assert "mean error" in capsys.readouterr().out


def test_boards_of_both_kinds_have_no_mean_of_all(boards, board, capsys):
    (nll,) = [other for other in boards if not other.has_digits]
    for both in ([board, nll], [nll, board]):
        with pytest.raises(UsageError, match="instead of mean, give score or mean error"):
            print_boards(both, Output("csv", "model,mean"))
        with pytest.raises(UsageError, match="instead of mean"):
            print_boards(both, Output("json", sort="-mean"))
        print_boards(both, Output("table", "model,mean"))
    capsys.readouterr()


def test_csv_of_several_boards_is_sorted_as_one_table(boards, capsys):
    assert len(boards) > 1
    print_boards(boards, Output("csv", "model", "model"))
    _, *models = csv.reader(io.StringIO(capsys.readouterr().out))
    assert models == sorted(models)
    print_boards([], Output("csv", sort="model"))


def test_commands_are_a_column_of_csv(boards, capsys):
    print_boards(boards, Output("csv", "model"), commands=True)
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == ["model", "command"]
    assert all(not command or command.startswith("iclbench run ") for _, command in rows)


def test_json_is_one_list_of_all_boards_with_full_numbers(boards, capsys):
    print_boards(boards, Output("json"))
    rows = json.loads(capsys.readouterr().out)
    assert {row["task"] for row in rows} == {"least-squares", "categorical"}
    by_id = {row["id"]: row for row in rows if row["id"]}
    for board in boards:
        for row in board.rows:
            assert by_id[row.record.id]["score"] == row.score
            assert by_id[row.record.id]["command"] == row.record.command
            assert by_id[row.record.id]["evaluation digest"] == board.evaluation.digest
            assert by_id[row.record.id]["metric"] == board.ranking.metric
            assert by_id[row.record.id]["unranked"] == row.unranked


def test_markdown_and_latex_are_tables_of_the_same_rows(board, capsys):
    print_boards([board], Output("markdown"))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 6
    assert len({line.count("|") for line in lines}) == 1
    print_boards([board], Output("latex"))
    text = capsys.readouterr().out
    assert text.count("\\\\\n") == 1 + 6
    assert "\\begin{tabular}" in text
    assert "1\\% worst" in text


def test_an_overview_has_a_line_for_each_board(boards):
    everyone = {record.id for board in boards for record in board.records}
    table = overview_table([board.records for board in boards], everyone)
    trained = [b for b in boards if any(row.is_trained for row in b.rows)]
    assert len(table.rows) == len(trained) < len(boards)
    left_out = len(boards) - len(trained)
    assert f"{counted(left_out, 'board')} without trained rows left out (--all)" in table.notes
    assert {row["seeds"] for row in table.rows} == {2}
    none = [board.records for board in boards if board not in trained]
    assert len(overview_table(none, everyone).rows) == len(none)
    line = next(row for row in table.rows if row["board"] == "least-squares")
    board = next(b for b in boards if b.task == "least-squares")
    assert line["best trained"] == board.rows[0].label
    assert line["best other"] == "▲ least-squares-qr"
    assert line["floor"].value == board.floor.score


def test_the_legend_explains_the_marks_that_occur(board):
    text = "\n".join(legend([board]))
    assert "−log₁₀ of the absolute error" in text
    shown = "".join(cell_of(c).text for row in board_table(board).rows for c in row.values())
    for mark, meaning in (("†", "† one seed"), ("‡", "‡ range"), ("~", "~ unreliable")):
        assert (meaning in text) == (mark in shown)
    assert np.isfinite(board.floor.score)


def test_without_boards_nothing_is_printed(capsys):
    print_boards([])
    assert capsys.readouterr().out == ""


def test_several_tracks_are_told_on_a_narrow_terminal(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for track, seeds in (("1s", 2), ("2s", 3)):
        record = run(model="baseconv", **SMALL, recipe="smoke", seeds=seeds, out=tmp_path)
        # As if it had been trained for so long, which would take as long.
        reseal(record.path, lambda content, track=track: content.update(track=track))
    lines = cli("leaderboard", "show", tmp_path).out.splitlines()
    assert any(line.split()[:2] == ["rank", "model"] for line in lines)
    shown = [line for line in lines if line.startswith("track ") or " baseconv " in line]
    assert [line.split()[:2] for line in shown] == [
        ["track", "2s"],
        ["alone", "baseconv"],
        ["track", "1s"],
        ["alone", "baseconv"],
    ]
