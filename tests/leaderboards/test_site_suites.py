"""The page of suites: scores by board, what has no row, and plots of comparable models alone."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from iclbench import Suite, run
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.scale import Score
from iclbench.leaderboards.site import suites
from iclbench.leaderboards.suite_score import score_suite
from iclbench.runs.suites import records_by_board

SUITE = Suite(
    name="two-of-three",
    version=1,
    summary="three boards",
    defaults={"eval_prompts": 32, "chance": "zero"},
    board=tuple(
        {"name": name, "task": task, "task_args": {"dim": 2, "examples": 4}}
        for name, task in (("plain", "least-squares"), ("penalized", "ridge"),
                           ("steps", "gradient"))
    ),
)  # fmt: skip
MODELS = ("transformer", "baseconv", "lsa-tokens", "elsa-tokens")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Every model on the first board, and the first of them on the second too."""
    out, made = tmp_path_factory.mktemp("suite"), []
    plain, penalized, _ = SUITE.boards
    cells = [(plain, m) for m in MODELS] + [(penalized, MODELS[0])]
    for board, model in cells:
        request = board.request(model, recipe="smoke", seeds=2)
        made.append(run(out=out, **request.model_dump()).model_copy(update={"track": "1m"}))
    made += [run(out=out, **b.request("zero").model_dump()) for b in (plain, penalized)]
    return made


@pytest.fixture(scope="module")
def view(records):
    table = score_suite(SUITE, records_by_board(SUITE, records))
    return suites.suite_view(table, Descriptions(pytest.fail))


def test_a_row_has_its_score_on_every_board_and_their_mean(view, records):
    titles, parts = zip(*((part["title"], part["rows"]) for part in view["tables"]), strict=True)
    same = "Trained models with the same 2 boards, track 1m"
    assert titles == (same, "Other trained models", "Solvers and constructions")
    (first,), rows, solvers = parts
    assert [row["boards"] for row in (first, *rows)] == ["2/3", *["1/3"] * 3]
    assert [part["compared"] for part in view["tables"]] == [True, False, False]
    assert (first["model"], first["title"]) == ("transformer", "Transformer")
    assert first["mark"] == "○"
    shown = {cell["id"] for row in (first, *rows) for cell in row["cells"] if cell}
    assert shown == {record.id for record in records if record.spec.model != "zero"}
    values = [float(cell["text"].rstrip("%").replace("−", "-")) for cell in first["cells"]]
    mean = float(first["mean"].rstrip("%"))
    assert mean == pytest.approx(sum(max(0.0, v) for v in values) / 2, abs=1.0)
    assert [cell is None for cell in rows[0]["cells"]] == [False, True]
    assert [cell["text"] for cell in solvers[0]["cells"]] == ["0.0%", "0.0%"]


def test_a_score_whose_interval_is_that_of_one_seed_says_so(records, tmp_path):
    plain = SUITE.boards[0]
    one = run(out=tmp_path, **plain.request("transformer", recipe="smoke", seeds=1).model_dump())
    chance = [record for record in records if record.spec.model == "zero"]
    table = score_suite(SUITE, records_by_board(SUITE, [one, *chance]))
    shown = suites.suite_view(table, Descriptions(pytest.fail))
    assert shown["tracks"] == "1 with open budgets"
    trained, solvers = (part["rows"][0]["cells"] for part in shown["tables"])
    (cell,) = filter(None, trained)
    assert "†" in cell["bounds"]
    assert all("†" not in cell["bounds"] for cell in solvers)


def test_the_command_runs_a_model_in_the_track_that_can_be_compared(view, records):
    assert view["own_budget"] == ""
    assert view["budget"] == "1m"
    own = SUITE.model_copy(update={"defaults": {**SUITE.defaults, "budget": "1m"}})
    table = score_suite(own, records_by_board(SUITE, records))
    assert suites.suite_view(table, Descriptions(pytest.fail))["budget"] == ""


def test_a_column_says_what_counts_as_none_and_as_all(view):
    assert [column["title"] for column in view["columns"]] == ["Least squares", "Ridge"]
    assert view["absent"] == ["steps"]
    column = view["columns"][0]
    assert column["about"] == "plain: Least squares, D\u00a0=\u00a02, N\u00a0=\u00a04"
    assert [name for _, name in column["ends"]] == ["digits, Zero", "digits, attainable"]
    assert float(column["ends"][1][0]) > 6


def test_the_page_says_the_rows_tracks_and_who_passes_a_reference(view, records):
    assert view["tracks"] == "4 of 1m, 1 minute of core time for each seed"
    assert view["passes"] == []
    scored = score_suite(SUITE, records_by_board(SUITE, records))
    plain = replace(scored.scales["plain"], reference_name="solver")
    first = replace(scored.entries[0], scores={"plain": Score(1.2, None, None)})
    table = replace(scored, scales={**scored.scales, "plain": plain}, entries=(first,))
    passing = suites.suite_view(table, Descriptions(pytest.fail))
    (text,) = passing["passes"]
    value = first.records["plain"].metrics["squared_error"].digits.mean
    assert text == (
        f"Transformer (1m) passes solver on Least squares: digits {value:.3g} against "
        f"{plain.reference:.3g}"
    )
    (cell,) = filter(None, passing["tables"][0]["rows"][0]["cells"])
    assert (cell["text"], cell["about"]) == ("120.0%", "passes the reference, solver")


def test_models_are_plotted_over_the_boards_that_all_of_them_have(view):
    by_parameters, by_state = view["figures"]
    assert by_parameters["title"] == "Score on Least squares against parameters, track 1m"
    assert by_state["title"] == "Score on Least squares against state, track 1m"
    assert len(by_parameters["legend"]) == len(MODELS)
    # Means have intervals, and models the hues that they have elsewhere.
    lines = json.loads(by_parameters["data"])["lines"]
    assert all(line["low"][0] <= line["y"][0] <= line["high"][0] for line in lines)
    about = Descriptions(pytest.fail)
    assert {line["hue"] for line in lines} == {about.hue(name) for name in MODELS}


def test_rows_that_chose_their_own_budgets_are_not_plotted(records):
    without = [record.model_copy(update={"track": None}) for record in records]
    table = score_suite(SUITE, records_by_board(SUITE, without))
    assert suites.suite_view(table, Descriptions(pytest.fail))["figures"] == []


def test_a_suite_with_few_rows_or_a_mistake_has_no_section(records, provide):
    rows = [SimpleNamespace(record=record, is_credible=True) for record in records]
    boards = [SimpleNamespace(rows=rows)]
    about, refused = Descriptions(pytest.fail), []
    provide("suite", "two-of-three", SUITE)
    provide("suite", "misnamed", SUITE)
    more = [{"name": f"b{i}", "task": "read", "eval_seed": i} for i in range(9)]
    large = {"name": "large", "board": (*SUITE.board, *more)}
    provide("suite", "large", SUITE.model_copy(update=large))
    names = [view["name"] for view in suites.suite_views(boards, about, refused.append)]
    assert names == ["two-of-three"]
    (line,) = refused
    assert "misnamed" in line


def test_scores_of_seldom_kinds_are_written():
    assert suites._percent(Score(-0.0001, None, None)) == "0.0%"
    assert suites._percent(Score(-0.2, None, None)) == "−20.0%"
    assert suites._percent(Score(-1e12, None, None)) == "< −999%"
    assert suites._percent(Score(float("inf"), None, None)) == "< −999%"
    assert suites._percent(None) == ""
    counts = [999, 1_000, 9_949, 9_950, 999_499, 999_500, 1_240_000]
    assert [*map(suites._count, counts)] == ["999", "1.0k", "9.9k", "10k", "999k", "1.0M", "1.2M"]
    assert suites._interval(Score(0.5, 0.25, 0.755)) == "25.0 … 75.5%"
    assert suites._interval(Score(0.5, None, None)) == ""
