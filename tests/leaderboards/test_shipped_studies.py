"""The studies that tasks and plugins ship as sweeps: every cell can be run, every figure drawn."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from iclbench import RunSpec, sweep
from iclbench.leaderboards.figures.draw import draw
from iclbench.runs.plan import resolve
from iclbench.sweeps.files import expand, read_sweep_file

ROOT = Path(__file__).parents[2]
STUDIES = sorted([*ROOT.glob("tasks/*/sweeps/*.toml"), *ROOT.glob("plugins/*/sweeps/*.toml")])


def short(path: Path) -> dict:
    """The study with one step of training, one seed and few prompts."""
    content = tomllib.loads(path.read_text("utf-8"))
    small = {"batch": 4, "learning_rate": 1e-6}
    content["defaults"] |= {"seeds": 1, "eval_prompts": 16}
    for part in (content["defaults"], *content["grid"]):
        if "recipe_args" in part or part is content["defaults"]:
            asked = part.get("recipe_args", {})
            kept = {k: v for k, v in asked.items() if k not in {"steps", "batch", "learning_rate"}}
            steps = asked.get("steps", 1)
            steps = list(range(1, len(steps) + 1)) if isinstance(steps, list) else 1
            part["recipe_args"] = {**kept, **small, "steps": steps}
        if isinstance(part.get("task_args"), dict) and "iterates" in part["task_args"]:
            part["task_args"] = {**part["task_args"], "iterates": 3}
    return content


def test_there_are_studies():
    assert len(STUDIES) >= 11


def sizes() -> list:
    found = [(path, size) for path in STUDIES for size in read_sweep_file(path).recipes]
    return [pytest.param(*f, id=f"{f[0].parents[1].name}-{f[0].stem}-{f[1]}") for f in found]


def has_weights_of_another_grid(grid: dict) -> bool:
    return any(str(grid.get(option)).startswith("@") for option in ("weights", "init"))


@pytest.mark.parametrize(("path", "size"), sizes())
def test_every_cell_of_a_further_size_can_be_planned(path, size):
    file = read_sweep_file(path).sized(size)
    features = Path(file.defaults.get("task_args", {}).get("features", "."))
    if not features.exists():
        pytest.skip(f"there are no features in {features}")
    for grid in file.grid:
        alone = {k: v for k, v in grid.items() if k != "name"}
        if has_weights_of_another_grid(grid):
            alone = {k: v for k, v in alone.items() if k not in {"weights", "init"}}
        for cell in expand(alone, file.defaults):
            resolve(RunSpec(**cell))


@pytest.mark.slow
@pytest.mark.parametrize("path", STUDIES, ids=lambda p: f"{p.parents[1].name}-{p.stem}")
def test_every_cell_can_be_run_and_the_figure_drawn(path, tmp_path):
    result = sweep(short(path), out=tmp_path)
    assert not result.failures
    figure = read_sweep_file(path).figure
    if figure is not None:
        assert draw(figure, result.records).data
