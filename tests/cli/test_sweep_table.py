"""The table and the figure of a sweep file: formats, and metrics that nothing has."""

from __future__ import annotations

import json

import pytest
from support import Shown

GRID = """
[[grid]]
model = ["zero", "averaging"]
task = "least-squares"
eval_prompts = 16
"""
TABLE = '[table]\nmetrics = "squared_*"\n'
FIGURE = '[figure]\nx = "model"\n'


@pytest.fixture
def write(tmp_path):
    def write(*parts):
        file = tmp_path / "sweep.toml"
        file.write_text("".join((GRID, *parts)))
        return file

    return write


def test_the_table_stands_below_the_boards(cli, write, tmp_path):
    outcome = cli("sweep", write(TABLE, FIGURE), "--out", tmp_path / "r")
    assert outcome.code == 0
    assert "ranked by" in outcome.out
    lines = outcome.out.splitlines()
    (head,) = [i for i, line in enumerate(lines) if line.split()[:2] == ["model", "squared_error"]]
    assert [line.split()[0] for line in lines[head + 2 : head + 5]] == [
        "attainable", "zero", "averaging",
    ]  # fmt: skip
    assert lines[-1] == f"figure: {tmp_path / 'r' / 'sweep.html'}"


@pytest.mark.parametrize("style", ["csv", "json", "markdown", "latex"])
def test_in_another_format_the_table_is_all_that_is_printed(cli, write, tmp_path, style):
    file = write(TABLE, FIGURE)
    outcome = cli("sweep", file, "--out", tmp_path / "r", "--format", style)
    assert outcome.code == 0
    assert f"figure: {tmp_path / 'r' / 'sweep.html'}" in outcome.err
    lines = outcome.out.splitlines()
    if style == "csv":
        assert lines[0] == "model,squared_error,squared_error low,squared_error high"
        assert [line.split(",")[0] for line in lines[1:]] == ["attainable", "zero", "averaging"]
        assert float(lines[2].split(",")[1]) > 0
    elif style == "json":
        rows = json.loads(outcome.out)
        assert [row["model"] for row in rows] == ["attainable", "zero", "averaging"]
        assert rows[1]["squared_error low"] < rows[1]["squared_error"]
    elif style == "markdown":
        assert lines[0] == "| model | squared_error |"
        assert sum(line.startswith("| ") for line in lines) == 5
    else:
        assert lines[0].startswith("% needs")
        assert outcome.out.count("begin{tabular}") == 1
        assert "±" not in "".join(line for line in lines if not line.startswith("%"))


def test_columns_of_boards_print_the_boards(cli, write, tmp_path):
    outcome = cli("sweep", write(TABLE), "--out", tmp_path / "r", "--format", "csv", "--columns",
                  "model,score")  # fmt: skip
    assert outcome.code == 0
    assert outcome.out.splitlines()[0] == "model,score"
    plain = cli("sweep", write(), "--out", tmp_path / "r", "--format", "csv")
    assert plain.out.startswith("board,task,")


@pytest.mark.parametrize("option", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("part", "message"),
    [
        (FIGURE + 'y = "squared_eror"', "figure: unknown metric 'squared_eror'; did you mean"),
        (FIGURE.replace("model", "curve"), "figure: unknown curve 'squared_error'"),
        ('[table]\nmetrics = ["squared_*", "nosuch"]', "table: unknown metric 'nosuch'"),
        ('[table]\nmetrics = "nosuch_*"', "table: unknown metric 'nosuch_*'"),
    ],
)
def test_metrics_that_no_run_has_are_refused_before_any(
    cli, write, tmp_path, part, message, option
):
    file = write(part)
    outcome = cli("sweep", file, "--out", tmp_path / "r", *option)
    assert outcome.code == 2
    assert f"error: {file}: {message}" in outcome.err
    assert not list(tmp_path.rglob("*.json"))


def test_a_table_of_metrics_that_no_record_has_is_an_error(cli, write, tmp_path, provide):
    provide("metric", "shown", Shown)
    file = write('metrics = ["shown"]\n[table]\nmetrics = ["shown", "nosuch"]')
    outcome = cli("sweep", file, "--out", tmp_path / "r", "--format", "csv")
    assert outcome.code == 2
    assert outcome.err.count("no metric of the records matches 'nosuch'") == 1
    assert outcome.out.startswith("model,shown")
    file = write('metrics = ["shown"]\n[table]\nmetrics = ["nosuch"]')
    nothing = cli("sweep", file, "--out", tmp_path / "r", "--format", "csv")
    assert (nothing.code, nothing.out) == (2, "")


def test_a_figure_that_cannot_be_drawn_hides_no_failure(cli, write, tmp_path):
    file = write(FIGURE.replace('"model"', '"training"'))
    file.write_text(file.read_text().replace('"averaging"', '"nonesuch"'))
    outcome = cli("sweep", file, "--out", tmp_path / "r")
    assert outcome.code == 1
    assert "failed: iclbench run --model nonesuch" in outcome.err
    assert "a figure of training needs records of trainings" in outcome.err


def test_a_table_that_cannot_be_made_hides_no_failure_and_no_figure(cli, write, tmp_path):
    """The weights whose sizes it shows are gone."""
    counts = TABLE + 'counts = { parameters = "*" }\n'
    file = write(TABLE, FIGURE)
    file.write_text(
        file.read_text().replace('["zero", "averaging"]', '"lsa"\nrecipe = "smoke"\nseeds = 1')
    )
    assert cli("sweep", file, "--out", tmp_path / "r").code == 0
    for weights in (tmp_path / "r" / "objects").rglob("*.safetensors"):
        weights.unlink()
    text = file.read_text().replace(TABLE, counts).replace('"lsa"', '["lsa", "nonesuch"]')
    file.write_text(text)
    for style in ("table", "csv"):
        outcome = cli("sweep", file, "--out", tmp_path / "r", "--format", style)
        assert outcome.code == 1
        assert ".safetensors" in outcome.err
        assert "failed: iclbench run --model nonesuch" in outcome.err
        assert "figure: " in outcome.out + outcome.err


@pytest.mark.parametrize("option", [("--format", "csv"), ("--columns", "model"), ("--sort", "x")])
def test_what_is_only_submitted_prints_no_table(cli, write, tmp_path, option):
    outcome = cli("sweep", write(), "--out", tmp_path / "r", "--detach", *option)
    assert (outcome.code, outcome.err) == (
        2,
        "iclbench: error: --detach prints no table: leave out --format, --columns and --sort\n",
    )


MORE = """
[[grid]]
model = "averaging"
metrics = ["shown"]
"""
ALONE = """
[[grid]]
model = "zero"
"""


@pytest.mark.parametrize("question", ["--dry-run", "--status"])
def test_a_question_about_a_device_that_is_not_there_is_refused(cli, tmp_path, question):
    file = tmp_path / "sweep.toml"
    file.write_text('out = "r"\n[[grid]]\nmodel = "zero"\ntask = "ridge"\n')
    outcome = cli("sweep", file, question, "--out", tmp_path / "r", "--device", "cuda:77")
    assert outcome.code == 2
    assert "cuda:77" in outcome.err


@pytest.mark.parametrize("grids", [MORE + ALONE, ALONE + MORE])
def test_the_order_of_grids_does_not_matter_for_names_of_metrics(cli, tmp_path, provide, grids):
    provide("metric", "shown", Shown)
    file = tmp_path / "sweep.toml"
    defaults = '[defaults]\ntask = "least-squares"\neval_prompts = 16\n'
    file.write_text(f'{defaults}[table]\nmetrics = ["squared_error", "shown"]\n{grids}')
    outcome = cli("sweep", file, "--dry-run", "--out", tmp_path / "r")
    assert outcome.code == 0, outcome.err


def test_a_record_that_lacks_a_shift_is_no_program_of_models(cli, tmp_path):
    file = tmp_path / "sweep.toml"
    text = '[defaults]\ntask = "least-squares"\neval_prompts = 16\n[[grid]]\nmodel = "zero"\n'
    file.write_text(text)
    assert cli("sweep", file, "--out", tmp_path / "r").code == 0
    file.write_text(f'{text}shift = ["noisy"]\n')
    outcome = cli("sweep", file, "--dry-run", "--out", tmp_path / "r")
    assert (
        "1 run: 1 have a record (1 to be evaluated under further shifts), "
        "0 to run as 0 programs of 0 models"
    ) in outcome.out
