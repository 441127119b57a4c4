"""Tables: columns, order, formats, and widths."""

from __future__ import annotations

import json
import re

import pytest

from iclbench import UsageError
from iclbench.display.fitting import fitting, shortened, shortened_names
from iclbench.display.formats import as_csv, as_json, as_latex, as_markdown
from iclbench.display.table import Cell, Column, Table
from iclbench.display.terminal import print_parts, print_table, terminal_width

COLUMNS = (
    Column("name", fit="shorten"),
    Column("value", right=True),
    Column("summary", fit="wrap"),
    Column("less", importance=1),
    Column("least", importance=2),
    Column("hidden", extra=True),
)
ROWS = [
    {"name": "a" * 30, "value": Cell("1e3", 1000.0), "summary": "words " * 20, "less": "l" * 12,
     "least": "x" * 12, "hidden": "=1+1"},
    {"name": "b_*", "value": Cell("~9", 9), "summary": "50% & more", "less": "l"},
    {"name": "c", "value": Cell("", None), "summary": ""},
]  # fmt: skip
TABLE = Table(COLUMNS, ROWS, title="A title", notes=["a note"])


def names(table):
    return [row["name"][0] for row in table.rows]


def test_rows_are_sorted_by_their_values_and_empty_ones_come_last():
    assert names(TABLE.sort("value")) == ["b", "a", "c"]
    assert names(TABLE.sort("-value")) == ["a", "b", "c"]
    assert names(TABLE.sort("-name")) == ["c", "b", "a"]
    with pytest.raises(UsageError, match="did you mean 'value'"):
        TABLE.sort("valeu")


def test_a_number_that_is_none_comes_last_in_either_order():
    rows = [{"value": value} for value in (float("nan"), 2.0, 1.0)]
    table = Table((Column("value"),), rows)
    assert [row["value"] for row in table.sort("value").rows][:2] == [1.0, 2.0]
    assert [row["value"] for row in table.sort("-value").rows][:2] == [2.0, 1.0]


def test_ranks_are_sorted_by_their_numbers():
    ranks = ["14–17", "1–14", "2", "1–6", "10–12", None]
    table = Table((Column("rank"),), [{"rank": rank} for rank in ranks])
    ordered = [row["rank"] for row in table.sort("rank").rows]
    assert ordered == ["1–6", "1–14", "2", "10–12", "14–17", None]


@pytest.mark.parametrize("texts", [
    ["-0.20 … 0.04", "-0.12 … 0.23", "-0.09 … 0.30", "6.56 … 6.87"],
    ["5.11e-15 … 6.0e-15", "3.94e-02 … 4.1e-02", "2.31e+00 … 3e+00", "1.1e+02 … 2e+02"],
    ["lsa-2", "lsa-10", "mamba2 layers=2", "mamba2 layers=12"],
])  # fmt: skip
def test_intervals_are_sorted_by_their_lower_bound_and_names_by_their_numbers(texts):
    table = Table([Column("name")], [{"name": text} for text in reversed(texts)])
    assert [row["name"] for row in table.sort("name").rows] == texts


def test_columns_are_selected_in_the_order_given():
    chosen = TABLE.select("value, hidden")
    assert [column.name for column in chosen.columns] == ["value", "hidden"]
    assert fitting(chosen, 5)[1] == []  # what was asked for is never left out
    assert len(fitting(TABLE.select("all"), 1000)[0]) == len(COLUMNS)
    for nothing in ("", " , "):
        with pytest.raises(UsageError, match="names no column"):
            TABLE.select(nothing)
    with pytest.raises(UsageError, match="unknown column 'nmae'"):
        TABLE.select("nmae")


def test_a_heading_stands_for_its_column_unless_several_have_it():
    table = Table((Column("score", label="mean digits"), Column("low", label="bound"),
                   Column("high", label="bound")), [{"score": 2}, {"score": 1}])  # fmt: skip
    for name in ("mean digits", "score"):
        assert table.sort(name).rows == [{"score": 1}, {"score": 2}]
    assert table.sort("-mean digits").rows == [{"score": 2}, {"score": 1}]
    assert [column.name for column in table.select("mean digits,low").columns] == ["score", "low"]
    with pytest.raises(UsageError, match="unknown column 'bound'") as refused:
        table.select("bound")
    assert "did you mean 'bound'" not in str(refused.value)


def test_the_least_important_columns_go_first():
    assert [column.name for column in fitting(TABLE, 200)[0]][-1] == "least"
    left_out = [fitting(TABLE, width)[1] for width in (200, 80, 60)]
    assert left_out == [[], ["least"], ["less", "least"]]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert terminal_width() == width
    print_table(TABLE)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert not any(line != line.rstrip() for line in lines)
    assert lines[0] == "A title"
    assert ("not shown: less, least (--columns all)" in lines) == (width in {40, 60})


def test_without_colour_and_width_the_table_is_the_same(monkeypatch, capsys):
    print_table(TABLE)
    plain = capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    print_table(TABLE)
    assert re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out) == plain


def test_colour_is_only_where_it_is_wanted(monkeypatch, capsys):
    styled = Table((Column("name"),), [{"name": Cell("x", "x", "green")}])
    print_table(styled)
    assert "\x1b[" not in capsys.readouterr().out
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    print_table(styled)
    assert "\x1b[32mx" in capsys.readouterr().out


def test_commands_are_not_broken_so_that_they_can_be_copied(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    command = "$ iclbench run --model transformer --task least-squares --recipe smoke"
    print_parts(["A title", command, "words " * 20])
    assert command in capsys.readouterr().out.splitlines()


def test_json_and_csv_hold_values_of_every_column():
    rows = json.loads(as_json(TABLE))
    assert [row["value"] for row in rows] == [1000.0, 9, None]
    assert set(rows[0]) == {column.name for column in COLUMNS}
    assert json.loads(as_json(Table((Column("x"),), [{"x": float("nan")}]))) == [{"x": None}]
    lines = as_csv(TABLE).splitlines()
    assert lines[0] == "name,value,summary,less,least,hidden"
    assert lines[1].endswith(",'=1+1")  # no spreadsheet runs it


def test_markdown_and_latex_escape_what_has_a_meaning():
    markdown = as_markdown(TABLE)
    assert markdown.startswith("A title\n\n| name | value | summary |")
    assert "| b\\_\\* | \\~9 | 50% &amp; more |" in markdown
    latex = as_latex(TABLE)
    assert "b\\_* & \\textasciitilde{}9 & 50\\% \\& more" in latex
    head = "% needs \\usepackage{booktabs}\n% A title\n\\begin{tabular}{lrlll}\n\\toprule\n"
    assert latex.startswith(head)
    assert latex.endswith("\\end{tabular}\n% a note\n")


def test_a_shortened_name_keeps_its_end():
    assert shortened("transformer layers=2", 12) == "tra…layers=2"
    assert shortened("short", 12) == "short"


def test_arguments_are_cut_before_a_name_unless_two_could_not_be_told_apart():
    long = "linear-transformer heads=2 ones=false"
    cut = shortened_names([long, "lsa"], 26)
    assert cut == {long: "linear-transformer…s=false", "lsa": "lsa"}
    other = long.replace("heads=2", "heads=4")
    cut = shortened_names([long, other], 26)
    assert cut == {long: "linear-t…eads=2 ones=false", other: "linear-t…eads=4 ones=false"}


@pytest.mark.parametrize("width", [40, 60, 80])
def test_columns_that_were_asked_for_and_do_not_fit_are_stacked_whole(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    numbers = [Column(name, right=True) for name in ("first", "second", "third", "fourth")]
    row = {column.name: Cell("2.2607718836809676", 2.26) for column in numbers}
    table = Table(
        [Column("name"), *numbers, Column("command"), Column("note", fit="wrap")],
        [{"name": "a", **row, "command": "run " * 40, "note": "words " * 40}, {"name": "b"}],
        notes=["below"],
    )
    print_table(table.select("all"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["name     a", "first    2.2607718836809676", "second   2.2607718836809676"]
    assert f"command  {'run ' * 40}" in lines  # whole, so that it can be copied
    assert max(len(line) for line in lines if not line.startswith("command")) <= width
    assert lines[-4:] == ["", "name     b", "", "below"]


def test_what_all_stacked_rows_share_stands_once_above_them(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    columns = [Column(name) for name in ("task", "model", "command", "empty")]
    rows = [{"task": "t", "model": model, "command": "run " * 9} for model in ("a", "b")]
    print_table(Table(columns, rows).select("all"))
    command = f"command  {'run ' * 9}"
    expected = ["task     t", command, "", "model    a", "", "model    b"]
    assert capsys.readouterr().out.splitlines() == expected


def test_stacked_rows_that_share_only_what_is_empty_begin_at_the_top(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    columns = [Column(name) for name in ("command", "empty")]
    rows = [{"command": f"{letter} " * 20} for letter in "ab"]
    print_table(Table(columns, rows).select("all"))
    assert capsys.readouterr().out.startswith("command  a a")


def test_names_that_would_be_cut_alike_take_the_place_of_a_column():
    rows = [{"name": f"{'a' * 20}{kind}{'z' * 40}", "steps": 1} for kind in "bc"]
    table = Table([Column("name", fit="shorten"), Column("steps", importance=1)], rows)
    assert fitting(table, 65)[1] == ["steps"]
    assert fitting(table, 75)[1] == []
    assert fitting(table, 30)[1] == ["steps"]  # nothing helps: the rest is shown


@pytest.mark.parametrize("width", [60, 200])
def test_a_column_that_heads_its_rows_stands_above_them_where_names_would_be_cut(
    monkeypatch, capsys, width
):
    monkeypatch.setenv("COLUMNS", str(width))
    columns = [Column("board", fit="shorten", heads=True), Column("model"), Column("hours")]
    boards = ["b" * 50, "b" * 50, "c"]
    rows = [{"board": board, "model": "m" * 20, "hours": "1"} for board in boards]
    print_table(Table(columns, rows, notes=["a note"]))
    lines = capsys.readouterr().out.splitlines()
    if width == 200:
        assert lines[0].split() == ["board", "model", "hours"]
        assert [line.split()[0] for line in lines[2:5]] == boards
    else:
        row = f"{'m' * 20}  1"
        assert lines[0].split() == ["model", "hours"]
        assert lines[2:] == [f"board {'b' * 50}", row, row, "", "board c", row, "a note"]


def test_a_heading_stands_above_its_rows_where_their_texts_take_several_lines(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "44")
    columns = [Column("track", heads=True), Column("model", fit="wrap"), Column("of", right=True)]
    models = ["a model " * 6, "short", "another one " * 5]
    rows = [{"track": "", "of": "0"}]
    rows += [{"track": t, "model": m, "of": "9"} for t, m in zip("aab", models, strict=True)]
    rows += [{"track": "", "model": "last", "of": "2"}]
    print_table(Table(columns, rows))
    lines = capsys.readouterr().out.splitlines()
    heads = [number for number, line in enumerate(lines) if line.startswith("track ")]
    assert [lines[number].rstrip() for number in heads] == ["track a", "track b"]
    first, second = heads
    assert lines[first + 1].startswith("a model")
    assert lines[second + 1].startswith("another one")
    assert lines[second - 2].startswith("short")  # and an empty line
    assert lines[-2:] == ["", f"last{lines[-1].removeprefix('last')}"]
    assert "\u2060" not in "".join(lines)


def test_rows_that_do_not_follow_each_other_have_no_common_heading(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "30")
    columns = [Column("track", heads=True), Column("model", fit="shorten"), Column("hours")]
    rows = [{"track": t, "model": "m" * 30, "hours": "1"} for t in ("a", "b", "a")]
    print_table(Table(columns, rows))
    assert "track" in capsys.readouterr().out.splitlines()[0]
