"""The table of the home page: one origin at a time, and colors from chance to the floor."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from iclbench.leaderboards.board import Board, leaderboard
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.findings import Finding, Judgement
from iclbench.leaderboards.overview_page import overview_page
from iclbench.leaderboards.ranking import Rank
from iclbench.leaderboards.scale import Scale, board_scale
from iclbench.leaderboards.site.home import families, findings, main_board
from iclbench.leaderboards.site.matrix import (
    FULL,
    _of_track,
    column_of,
    decimals_of,
    tables,
    written,
)
from iclbench.leaderboards.site.support import Support


@pytest.fixture(scope="module")
def boards(leaderboards):
    return leaderboard(leaderboards / "records")


@pytest.fixture(scope="module")
def about():
    return Descriptions(print)


@pytest.fixture(scope="module")
def matrix(boards):
    return tables(boards, Descriptions(print))


def test_a_table_shows_one_origin_and_dtype_and_trained_ones_come_first(matrix, boards):
    origins = {row.record.id: (row.origin, board.dtype) for board in boards for row in board.rows}
    assert matrix["tables"][0]["origin"] == "trained"
    shown = set()
    for table in matrix["tables"]:
        cells = [cell for row in table["rows"] for cell in row["cells"] if cell]
        for cell in cells:
            assert origins[cell["id"]] == (table["origin"], table["dtype"])
        shown.add((table["origin"], table["dtype"]))
    assert shown == set(origins.values())


def test_no_row_and_no_column_is_empty(matrix):
    for table in matrix["tables"]:
        assert all(any(row["cells"]) for row in table["rows"])
        assert all(column["cells"] for column in table["columns"])
        assert sum(span for _, span in table["groups"]) == len(table["columns"])


def test_a_model_that_ignores_its_input_is_white_and_an_exact_one_dark(matrix, board):
    table = next(t for t in matrix["tables"] if (t["origin"], t["dtype"]) == ("solver", "float32"))
    at = [column["task"] for column in table["columns"]].index("least-squares")
    cells = {row["name"]: row["cells"][at] for row in table["rows"]}
    assert cells["zero"]["percent"] == 0
    assert cells["least-squares-qr"]["percent"] > 0.9 * FULL
    assert table["columns"][at]["group"] == "Linear regression"


def test_without_a_floor_the_best_solver_is_the_reference(board):
    bare = type(board)(tuple(replace(row, floor_score=None) for row in board.rows), None)
    solvers = [r for r in bare.rows if r.origin == "solver" and not r.record.chance]
    best = max(solvers, key=lambda row: row.score)
    assert board_scale(bare).reference == best.score
    assert board_scale(bare).reference_name == best.record.spec.model
    trained = type(board)(tuple(r for r in bare.rows if r not in solvers), None)
    assert board_scale(trained).reference_name == ""
    assert board_scale(trained).reference == max(
        r.score for r in trained.rows if not r.record.chance
    )


def test_the_scale_goes_from_chance_to_the_floor(board):
    scale = board_scale(board)
    zero = next(row for row in board.rows if row.record.chance)
    assert scale == Scale(zero.score, board.floor.score, "attainable", in_digits=True)
    assert scale.share(zero.record) == 0.0
    trained = next(row for row in board.rows if row.is_trained)
    expected = (trained.score - zero.score) / (board.floor.score - zero.score)
    assert scale.share(trained.record) == pytest.approx(min(1.0, max(0.0, expected)))


def test_a_scale_that_points_the_wrong_way_colors_nothing(board):
    trained = next(row for row in board.rows if row.is_trained)
    assert Scale(3.0, 1.0).share(trained.record) is None
    assert Scale(None, 1.0).share(trained.record) is None


def test_families_are_named_by_the_plugins(boards):
    about = Descriptions(print)
    groups = families(boards, about)
    assert next(iter(groups)) == "Linear regression"
    assert {board.task for board in groups["Classification"]} == {"categorical"}
    board = main_board(groups["Linear regression"])
    assert board.task == "least-squares"
    assert board.dtype == "float32"


def _judgement(records, verdict, **options):
    finding = Finding(
        records=records, source="s", claim=f"{records} {verdict}", criterion="c",
        written="2026-01-01", compare="value", first={"where": {}, "metric": "m"},
        reproduced=(0, 1), contradicted=(2, 3), **options,
    )  # fmt: skip
    return Judgement(finding, verdict)


def test_findings_with_a_verdict_come_first_and_of_different_studies(about):
    judgements = [_judgement("a", "not run"), _judgement("b", "reproduced"),
                _judgement("b", "reproduced"), _judgement("c", "not shown")]  # fmt: skip
    shown = findings(judgements, about)
    assert [f["finding"].claim for f in shown] == ["b reproduced", "c not shown", "a not run"]
    assert [f["page"] for f in shown] == ["studies/b.html", "studies/c.html", "findings.html#a"]


def test_findings_of_every_verdict_are_shown_before_a_second_of_one(about):
    judgements = [_judgement("a", "reproduced"), _judgement("b", "reproduced"),
                _judgement("c", "in kind"), _judgement("d", "contradicted")]  # fmt: skip
    shown = findings(judgements, about)
    assert [f["verdict"] for f in shown] == ["reproduced", "contradicted", "in kind"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([4.0, 3.84, 2.9, None], ["4.00", "3.84", "2.90"]),
        ([0.5, 0.123, 1.0], ["0.500", "0.123", "1.000"]),
        ([12345.6, 300.0, 2e7], ["12,346", "300", "2e+07"]),
        ([-0.0001, 0.002], ["0.000", "0.002"]),
        ([1.0, 0.0, 1.0], ["1", "0", "1"]),
        ([0.00012, -0.0003, 0.0], ["0.00012", "−0.0003", "0"]),
    ],
)
def test_a_column_has_one_number_of_decimals(values, texts):
    decimals = decimals_of(values)
    assert [written(v, decimals) for v in values if v is not None] == texts


def test_a_result_of_another_track_names_it(board):
    about = Descriptions(print)
    trained = [row for row in board.rows if row.is_trained]
    cells = {
        usual: list(column_of("", board, trained, about, usual)["cells"].values())
        for usual in (None, "", "10m")
    }
    assert [cell["track"] for cell in cells[None]] == [""]
    assert [cell["track"] for cell in cells[""]] == [""]
    # The rows have open budgets.
    assert [cell["track"] for cell in cells["10m"]] == ["open"]


def test_a_column_compares_models_of_one_track_where_it_can():
    def row(model, track):
        spec = SimpleNamespace(model=model)
        return SimpleNamespace(track=track, record=SimpleNamespace(spec=spec))

    rows = [row("transformer", "10m"), row("transformer", "1m"), row("lsa", "10m")]
    assert _of_track(rows, "1m") == rows[1:]
    assert _of_track(rows, "") == rows


def test_claims_and_criteria_written_before_the_run_are_shown_first(about):
    judgements = [_judgement("a", "reproduced", own_question=True),
                _judgement("b", "contradicted", after_run=True), _judgement("c", "in kind"),
                _judgement("c", "not shown")]  # fmt: skip
    shown = findings(judgements, about)
    assert [f["verdict"] for f in shown] == ["in kind", "contradicted*", "holds"]


def test_a_claim_that_was_tested_twice_is_shown_once_by_the_longest_training(about):
    longest, short = _judgement("a", "in kind"), _judgement("a", "contradicted", shorter_run=True)
    shown = findings([short, longest], about)
    assert [f["verdict"] for f in shown] == ["in kind"]


def _table_of(matrix, origin="trained"):
    return next(t for t in matrix["tables"] if (t["origin"], t["dtype"]) == (origin, "float32"))


def test_a_cell_that_is_not_better_than_chance_says_so_and_has_no_color(board, about):
    trained = next(row for row in board.rows if row.is_trained)
    marks = {}
    for chance in ("", "at chance", "perhaps at chance", "worse than chance"):
        row = replace(trained, chance=chance)
        (cell,) = column_of("", board, [row], about)["cells"].values()
        marks[chance] = cell["marks"]
        assert cell["no_better_than_chance"] == bool(chance)
        assert (chance in cell["about"]) if chance else "chance" not in cell["about"]
        assert "2 seeds" in cell["about"]
    # The row was not tuned.
    assert list(marks.values()) == ["○", "○ ≈", "○ ≈?", "○ ▽"]


def test_html_and_markdown_have_the_same_marks(board, about):
    trained = replace(next(row for row in board.rows if row.is_trained), chance="at chance")
    one = Board((trained,), None)
    (cell,) = column_of("", one, [trained], about)["cells"].values()
    page = overview_page([one], "0" * 64)
    (line,) = [line for line in page.splitlines() if line.startswith("| baseconv")]
    assert f"{cell['marks']} |" in line


@pytest.mark.parametrize(
    ("rank", "chance", "usual", "is_best"),
    [(Rank(1, 3), "", None, True), (Rank(1, 3), "", "10m", False), (Rank(2, 3), "", None, False),
     (None, "", None, False), (Rank(1, 3), "at chance", None, False)],
)  # fmt: skip
def test_a_cell_is_bold_if_no_row_of_the_track_is_better(
    board, about, rank, chance, usual, is_best
):
    trained = next(row for row in board.rows if row.is_trained)
    row = replace(trained, rank=rank, chance=chance)
    (cell,) = column_of("", board, [row], about, usual)["cells"].values()
    assert cell["is_best"] == is_best


def test_an_empty_cell_says_whether_the_model_can_do_the_board(matrix):
    table = _table_of(matrix, "solver")
    at = [column["task"] for column in table["columns"]].index("least-squares")
    blanks = {row["name"]: row["blanks"][at] for row in table["rows"]}
    assert blanks["least-squares-qr"] == ("", "")
    assert blanks["class-frequency"][0] == "–"
    assert blanks["class-frequency"][1].startswith("not supported: ")
    assert blanks["gradient-descent"] == ("·", "no solver, float32 result on this board")


def test_a_column_names_its_budget_and_its_setting(boards, matrix):
    columns = {c["task"]: c for c in _table_of(matrix)["columns"]}
    assert columns["least-squares"]["budget"] == "open"
    assert columns["least-squares"]["setting"] == "D\u00a0=\u00a02, N\u00a0=\u00a04"
    assert all(c["budget"] == "" for c in _table_of(matrix, "solver")["columns"])


def test_a_task_that_can_t_be_loaded_refuses_no_model(board):
    support = Support()
    assert support.reason_against("zero", board) == ""
    assert support.reason_against("class-frequency", board) != ""
    assert support.reason_against("no-such-model", board) == ""
    unknown = replace(board.rows[0], record=board.rows[0].record.model_copy(
        update={"spec": board.rows[0].record.spec.model_copy(update={"task": "gone"})}
    ))  # fmt: skip
    assert support.reason_against("class-frequency", Board((unknown,), None)) == ""
