"""Sweep files: grids, sizes, and files that are refused."""

from __future__ import annotations

import pytest

from iclbench import UsageError, sweep
from iclbench.sweeps.files import expand, read_sweep_file

DEFAULTS = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "recipe_args": {"steps": 3},
    "seeds": 2,
    "eval_prompts": 32,
}


def test_every_list_is_an_axis():
    grid = {"model": ["a", "b"], "task": "t", "model_args": {"x": [1, 2], "y": 3}}
    cells = list(expand(grid, {}))
    assert len(cells) == 4
    assert cells[0] == {"model": "a", "task": "t", "model_args": {"x": 1, "y": 3}}


def test_a_list_of_lists_is_an_axis_of_lists():
    cells = list(expand({"model_args": {"betas": [[0.9, 0.99], [0.8, 0.9]]}}, {}))
    assert [c["model_args"]["betas"] for c in cells] == [[0.9, 0.99], [0.8, 0.9]]


def test_seeds_metrics_and_freeze_are_taken_whole():
    (cell,) = expand({"seeds": [3, 4], "metrics": ["a", "b"], "freeze": ["x", "y"]}, {})
    assert cell == {"seeds": [3, 4], "metrics": ["a", "b"], "freeze": ["x", "y"]}
    assert list(expand({"seeds": "3,4"}, {})) == [{"seeds": (3, 4)}]


def test_a_grid_overrides_the_defaults_argument_by_argument():
    (cell,) = expand({"model_args": {"x": 2}}, {"model_args": {"x": 1, "y": 1}, "task": "t"})
    assert cell == {"task": "t", "model_args": {"x": 2, "y": 1}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"grid": []}, "grid"),
        ({"girds": [{}]}, "did you mean 'grid'?"),
        ({"grid": [{"model": "zero", "task": "t", "sedes": 3}]}, "did you mean 'seeds'?"),
        ({"grid": [{"model": "zero"}]}, "task is missing"),
        ({"grid": [{}], "out": "a\x1b[2J"}, "out: a path has visible characters only"),
        ({"grid": [{}], "out": "a\0b"}, "out: a path has visible characters only"),
        ({"grid": [{}], "out": "x" * 501}, "out: .*at most 500 characters"),
        ({"grid": [{}], "sizes": {"../up": {}}}, "'../up' can't name a folder"),
    ],
)
def test_a_bad_file_is_refused(content, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        sweep(content, out=tmp_path)


def test_a_file_that_is_not_toml_is_refused(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text("grid = [")
    with pytest.raises(UsageError, match=r"sweep\.toml"):
        sweep(path)
    with pytest.raises(UsageError, match="unknown executor"):
        sweep({"grid": [{"model": "zero", "task": "t"}]}, executor="nonesuch")


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([{"model": "transformer", "init": "@other"}], "no grid before this one"),
        ([{"name": "a", "model": "zero"}, {"name": "a", "model": "zero"}], "two grids"),
        ([{"name": "a", "model": ["zero", "averaging"]}], "names 2 runs"),
        ([{"name": ["a"], "model": "zero"}], "must be text"),
        (
            [{"name": "a", "model": "zero"}, {"model": "transformer", "init": ["@a"]}],
            "a grid for each",
        ),
        (
            [{"name": "a", "model": "zero"}, {"model": "transformer", "init": "@a", "sedes": 3}],
            "did you mean 'seeds'?",
        ),
    ],
)
def test_unusable_names_are_refused(grid, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        sweep({"defaults": DEFAULTS, "grid": grid}, out=tmp_path)
    assert not list(tmp_path.rglob("*.json"))


HEAD = '[defaults]\ntask = "least-squares"\n'
GRID = '[[grid]]\nmodel = "zero"\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEAD + GRID + GRID + 'seeds = "x"', "grid 2: seeds: 'x' is neither"),
        (HEAD + GRID + 'dtype = "float8"', "grid 1: dtype: "),
        (HEAD + GRID + GRID + "dtype = []", "grid 2: a grid with an empty list"),
        (HEAD + GRID + 'freeze = "x"', "grid 1: freeze takes a list of names, not 'x'"),
        (HEAD + GRID + 'init = "@other"', "grid 1: no grid before this one"),
        (HEAD + 'weights = "@other"\n' + GRID, "defaults can't take"),
        ("grid = 3", r"grid: a list is needed: each grid is a table \[\[grid\]\]"),
        ("[grid]\nmodel = 'zero'", r"grid: a list is needed"),
        ("figure = 3\n" + GRID, "figure: a table is needed"),
        ("[figure]\nx = 'model'\ny = 3\n" + GRID, "figure.y: a name or a list of names"),
        ("[figure]\nx = 'training'\ny = 'nll'\n" + GRID, "y does not apply to training"),
        ("[figure]\nx = 'model'\nlines = [1]\n" + GRID, "figure.lines: a name or a list"),
        ("[table]\nmetrics = []\n" + GRID, "table.metrics: at least one pattern"),
        ("[table]\nmetrics = 'a'\nstatistic = 'x'\n" + GRID, "'mean' or 'median'"),
    ],
)
def test_errors_name_the_file_and_its_grid_and_no_type_of_python(content, message, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(content)
    with pytest.raises(UsageError, match=message) as caught:
        sweep(path, out=tmp_path / "out")
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert not any(word in said for word in ("tuple", "dictionary", "Value error"))


def test_a_single_name_needs_no_list(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(HEAD + GRID + "[figure]\nx = 'dtype'\ny = 'a'\npanels = 'task'\n"
                    "[table]\nmetrics = 'a'")  # fmt: skip
    file = read_sweep_file(path)
    assert (file.figure.y, file.figure.panels) == (("a",), ("task",))
    assert file.table.metrics == ("a",)


def test_a_size_replaces_fields_of_the_file():
    grids = [{"model": "baseconv", "model_args": {"width": 8}}, {"model": "zero"}]
    size = {
        "defaults": {"recipe_args": {"steps": 2}, "seeds": 1},
        "grid": [{"model_args": {"layers": [1, 2]}}, {}],
    }
    file = read_sweep_file({"defaults": DEFAULTS, "grid": grids, "sizes": {"paper": size}})
    assert file.sized("quick") is file
    paper = file.sized("paper")
    assert paper.out == "results-paper"
    assert paper.defaults == {**DEFAULTS, "recipe_args": {"steps": 2}, "seeds": 1}
    assert paper.grid == [
        {"model": "baseconv", "model_args": {"layers": [1, 2]}},
        {"model": "zero"},
    ]


def test_an_unknown_size_or_one_that_does_not_fit_is_refused(tmp_path):
    content = {"defaults": DEFAULTS, "grid": [{"model": "zero"}], "sizes": {"paper": {}}}
    with pytest.raises(UsageError, match="did you mean 'paper'"):
        sweep(content, out=tmp_path, size="papr")
    content["sizes"]["paper"] = {"grid": [{}, {}]}
    with pytest.raises(UsageError, match="2 grids, the file 1"):
        sweep(content, out=tmp_path)
