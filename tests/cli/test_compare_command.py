"""`iclbench compare`: two records on the prompts that they share."""

from __future__ import annotations

import csv
import io
import json

import pytest

from iclbench import compare, run
from iclbench.display.comparison import _row
from iclbench.display.table import Cell

ARGS = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 64}


@pytest.fixture
def pair(tmp_path):
    models = ("averaging", "least-squares-qr")
    return [run(model=model, **ARGS, out=tmp_path).path for model in models]


def test_a_terminal_shows_which_is_better(cli, pair, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli("compare", *pair).out
    assert "a: averaging on least-squares" in shown
    assert "$ iclbench run --model least-squares-qr" in shown
    line = compare(*pair).loc["squared_error"]
    (row,) = [text for text in shown.splitlines() if text.startswith("digits of")]
    assert f"  {line.a:.2f}  {line.b:.2f}  " in row
    assert f"{line.difference:.2f}  {line.low:.2f} … {line.high:.2f}" in row
    assert line.better == "b"
    assert " b" in row
    assert "<0.001" in row
    # Commands are whole, so that they can be copied.
    assert max(len(text) for text in shown.splitlines() if text[:1] != "$") <= 80


def test_csv_and_json_have_the_numbers_of_python(cli, pair):
    line = compare(*pair).loc["squared_error"]
    (row,) = csv.DictReader(io.StringIO(cli("compare", *pair, "--format", "csv").out))
    for name, value in (("a", line.a), ("a − b", line.difference), ("low", line.low)):
        assert float(row[name]) == pytest.approx(value, rel=1e-12, abs=0)
    (entry,) = json.loads(cli("compare", *pair, "--format", "json").out)
    assert entry["p"] == line.p


def test_what_is_no_record_and_what_differs_is_one_line(cli, pair, tmp_path):
    other = run(model="zero", task="least-squares", eval_prompts=8, out=tmp_path).path
    for second, message in ((tmp_path, "is a folder, not a file"), (other, "arguments differ")):
        outcome = cli("compare", pair[0], second)
        assert outcome.code == 2
        assert message in outcome.err
        assert outcome.err.count("\n") == 1


def test_rounding_is_no_difference_and_a_small_mean_is_no_rounding():
    line = {"metric": "m", "statistic": "mean", "a": 16.0, "b": 16.0, "difference": 1e-15,
            "low": -3e-11, "high": 3e-11, "p": 1.0, "better": "", "note": ""}  # fmt: skip
    row = _row(line)
    assert row["a − b"] == Cell("0", 1e-15)
    assert row["95% interval"] == "0 … 0"
    row = _row({**line, "a": 1e-15, "difference": -16.0, "low": -17.0, "high": -15.0})
    assert row["a"].text == "1e-15"
    assert row["95% interval"] == "-17 … -15"
