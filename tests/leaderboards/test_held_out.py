"""Rows on held-out prompts: one that is significantly worse there has no rank."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from heldout_files import resealed

from iclbench import RecordError, RecordStore, run
from iclbench.display.boards import board_table
from iclbench.display.formats import as_markdown
from iclbench.leaderboards import formats, held_out
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.page_parts import HELD_OUT, held_out_legend
from iclbench.leaderboards.reading import Together, boards_of
from iclbench.leaderboards.site import run_parts
from iclbench.runs.heldout import held_out_path, read_held_out, write_held_out
from iclbench.runs.heldout_evaluation import evaluate_held_out
from iclbench.runs.store import read_record

TINY = {"task": "least-squares", "recipe": "smoke", "seeds": 2, "eval_prompts": 64,
        "task_args": {"dim": 2, "examples": 4}}  # fmt: skip


@pytest.fixture
def path(tmp_path) -> Path:
    run(model="baseconv", **TINY, out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    return path


def test_a_row_that_is_significantly_worse_on_held_out_prompts_has_no_rank(path):
    held_out = evaluate_held_out(path, read_record(path), "00" * 32)
    score = read_record(path).main.metrics["squared_error"].digits.mean
    # The test decides, and not the scores: these also count digits beyond the attainable.
    for change, of_score, rank in (
        (-1.0, -1.0, "fails held out"), (1.0, 1.0, "alone"), (0.1, -0.1, "alone")
    ):  # fmt: skip
        digits = held_out.statistics.digits.model_copy(update={"mean": score + of_score})
        statistics = held_out.statistics.model_copy(update={"digits": digits})
        tested = {"mean": change, "low": change - 0.05, "high": change + 0.05, "p": 1e-6}
        far = held_out.difference.model_copy(update=tested)
        changes = {"difference": far, "statistics": statistics}
        write_held_out(path, resealed(held_out.model_copy(update=changes)))
        board = next(b for b in leaderboard(path.parents[1]) if any(row.held_out for row in b.rows))
        assert " differs" in as_markdown(board_table(board))
        (row,) = [row for row in board.rows if row.is_trained]
        assert formats.rank(row) == rank
        assert row.fails_held_out is (rank == "fails held out")


@pytest.mark.parametrize(("better", "fails"), [(0.2, True), (0.8, False)])
def test_ranks_alone_can_show_that_a_row_is_worse(path, better, fails):
    held_out = evaluate_held_out(path, read_record(path), "00" * 32)
    # A mean that heavy tails moved says nothing, whatever its sign.
    far = {"p": 0.5, "rank_p": 1e-6, "better": better}
    difference = held_out.difference.model_copy(update=far)
    write_held_out(path, resealed(held_out.model_copy(update={"difference": difference})))
    board = next(b for b in leaderboard(path.parents[1]) if any(row.held_out for row in b.rows))
    (row,) = [row for row in board.rows if row.is_trained]
    assert (row.held_out_differs, row.fails_held_out) == (True, fails)
    shown = run_parts.held_out(row)
    assert f"by Welch's test; better in {better:.0%} of pairs of prompts, p = 1e−06 by" in shown
    assert "by ranks; significant" in shown


def test_a_held_out_score_that_is_not_finite_differs(path):
    held_out = evaluate_held_out(path, read_record(path), "00" * 32)
    lost = held_out.statistics.digits.model_copy(update={"mean": None})
    unknown = {**dict.fromkeys(("mean", "low", "high", "p")), "rank_p": 1.0, "better": 0.5}
    changes = {
        "statistics": held_out.statistics.model_copy(update={"digits": lost}),
        "difference": held_out.difference.model_copy(update=unknown),
    }
    write_held_out(path, resealed(held_out.model_copy(update=changes)))
    board = next(b for b in leaderboard(path.parents[1]) if any(row.held_out for row in b.rows))
    (row,) = [row for row in board.rows if row.is_trained]
    assert (row.held_out_differs, row.unranked) == (True, "fails held out")


@pytest.mark.parametrize(
    ("difference", "message"),
    [
        ({"p": 2.0}, r"\bp\b.*less than or equal to 1"),
        ({"p": -0.1}, r"\bp\b.*greater than or equal to 0"),
        ({"mean": 0.5, "low": -0.1, "high": 0.1}, "not in its interval"),
    ],
)
def test_numbers_that_no_test_gives_are_refused(path, difference, message):
    held_out = evaluate_held_out(path, read_record(path), "00" * 32)
    part = held_out.difference.model_copy(update=difference)
    write_held_out(path, resealed(held_out.model_copy(update={"difference": part})))
    with pytest.raises(RecordError, match=message):
        read_held_out(path, read_record(path))


def test_the_legend_says_where_evaluation_data_is_public(path):
    write_held_out(path, evaluate_held_out(path, read_record(path), "00" * 32))
    boards = leaderboard(path.parents[1])
    assert held_out_legend(boards) == [HELD_OUT]
    record = next(row.record for board in boards for row in board.rows)
    main = record.main.model_copy(update={"provenance": {"sources": ["tales"]}})
    of_data = record.model_copy(update={"evaluations": {"main": main}})
    assert held_out.is_of_public_data(of_data)
    assert not held_out.is_of_public_data(record)
    row = next(row for row in boards[0].rows if row.held_out)
    board = replace(boards[0], rows=(replace(row, record=of_data),))
    assert "The evaluation data of least-squares are public." in held_out_legend([board])[1]


def test_your_own_copy_of_a_published_row_has_its_held_out_evaluation(path, tmp_path):
    write_held_out(path, evaluate_held_out(path, read_record(path), "00" * 32))
    mine, name = tmp_path / "mine", path.relative_to(tmp_path)
    shutil.copytree(tmp_path, mine)
    held_out_path(mine / name).unlink()
    stores = (RecordStore(mine), RecordStore(tmp_path))
    record = read_record(mine / name)
    assert Together(stores).path_of(record) == path
    # Other weights of the same run were not evaluated.
    other = record.model_copy(update={"weights_file": None})
    assert Together(stores).path_of(other) == mine / name


def test_rows_that_were_never_submitted_wait_for_no_evaluation(path, tmp_path):
    write_held_out(path, evaluate_held_out(path, read_record(path), "00" * 32))
    own = {**TINY, "out": tmp_path / "mine"}
    rows = [run(model=model, **own) for model in ("lsa-tokens", "transformer")]
    stores = (RecordStore(tmp_path / "mine"), RecordStore(tmp_path))
    (board,) = boards_of([read_record(path), *rows], Together(stores), pytest.fail)
    assert not any(row.unranked for row in board.rows if row.is_trained)
    # Nor beside it in its folder, where it was pulled, unless that is one of published records.
    for model in ("lsa-tokens", "transformer"):
        run(model=model, **TINY, out=tmp_path)
    published = Path(shutil.copytree(tmp_path, tmp_path / "boards" / "records"))
    for folder, waiting in ((tmp_path, 0), (published, 2)):
        (board,) = leaderboard(folder)
        assert [row.unranked for row in board.rows].count("not held out") == waiting
