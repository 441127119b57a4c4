"""LaTeX: every symbol of a table has a word, and everything else is a comment."""

from __future__ import annotations

import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest

from iclbench import run
from iclbench.display.latex import as_latex, comment, latex
from iclbench.display.table import Column, Table
from iclbench.leaderboards import formats
from iclbench.leaderboards.bounds import ONE_SEED, RANGE

PACKAGE = Path(formats.__file__).parents[1]
#: The files with what tables and pages show, and texts of plugins that tables of entries show.
SOURCES = [
    *PACKAGE.glob("display/*.py"),
    *PACKAGE.glob("cli/*.py"),
    *PACKAGE.glob("leaderboards/*.py"),
    *PACKAGE.parent.glob("plugins/*/*.py"),
    *PACKAGE.parent.glob("tasks/*/*.py"),
]
SYMBOLS = sorted({c for file in SOURCES for c in file.read_text("utf-8")
                  if not c.isascii() and not unicodedata.combining(c)})  # fmt: skip
MARKS = {
    *formats.MARKS.values(),
    formats.UNTUNED,
    formats.TUNED_AT_CHANCE,
    ONE_SEED,
    RANGE,
    *"±−Σᵢᵀ×≥≤…",
}


def is_plain(text):
    """Whether LaTeX prints the text as it is: ASCII and accented letters."""
    return all(c.isascii() or re.match("LATIN (SMALL|CAPITAL) ", unicodedata.name(c)) for c in text)


def test_every_symbol_of_a_table_has_a_word_of_latex():
    assert set(SYMBOLS) >= MARKS
    for symbol in [*SYMBOLS, *MARKS, *"∑‖λΛ⁻¹²³₀₁ₙµ"]:
        written = latex(symbol)
        assert is_plain(written), symbol
        assert "U+" not in written, symbol


def test_a_minus_is_no_hyphen_and_two_hyphens_are_no_dash():
    assert latex("-0.86 … -0.50") == r"$-$0.86 \dots{} $-$0.50"
    assert latex("2.45e-04") == "2.45e$-$04"
    assert latex("run --model lsa-tokens 1–2") == "run -{}-model lsa-tokens 1--2"
    assert latex("[-0.1, +0.2]") == "[$-$0.1, +0.2]"


def test_marks_of_origins_stay_apart():
    written = [latex(mark) for mark in MARKS]
    assert len(set(written)) == len(written)


def test_a_character_without_a_word_is_its_number():
    assert latex("é 漢") == "é U+6F22"
    assert latex("<a|b> [1]") == "$<$a$|$b$>$ [1]"


def test_a_row_is_no_argument_of_the_line_before():
    rows = [{"a": "[0, 1]"}, {"a": "*"}, {"a": "◇"}]
    lines = as_latex(Table((Column("a"),), rows, notes=["two\nlines"])).splitlines()
    assert lines[0] == r"% needs \usepackage{amssymb,booktabs}"
    assert lines[5:8] == [r"{}[0, 1] \\", r"{}* \\", r"$\lozenge$ \\"]
    assert lines[-2:] == ["% two", "% lines"]
    assert comment("") == "%"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    task = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 16}
    run("baseconv", recipe="smoke", seeds=1, **task, out=out)
    run("zero", **task, out=out)
    return out


@pytest.mark.parametrize(
    "verb", [["show"], ["leaderboard", "show", "--commands"], ["leaderboard", "show"]], ids=" ".join
)
def test_output_can_be_input_as_it_is(cli, results, verb, tmp_path):
    outcome = cli(*verb, results, "--format", "latex")
    assert outcome.code == 0
    table = re.compile(r"\\begin\{tabular\}.*?\\end\{tabular\}\n", re.S)
    assert table.search(outcome.out)
    assert is_plain("".join(table.findall(outcome.out)))
    outside = [line for line in table.sub("", outcome.out).splitlines() if line]
    assert outside
    assert all(line.startswith("%") for line in outside), outside
    assert any("iclbench run" in line for line in outside) == (verb != ["leaderboard", "show"])
    assert any(ONE_SEED in line for line in outside)
    if shutil.which("pdflatex"):
        (tmp_path / "table.tex").write_text(outcome.out)
        (tmp_path / "main.tex").write_text(
            r"\documentclass{article}\usepackage{amssymb,booktabs}\begin{document}"
            r"\input{table}\end{document}"
        )
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
