"""The studies in the packages of tasks and plugins: cells can be run and figures drawn."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from iclbench import RunSpec, Task, UsageError, host, sweep
from iclbench.leaderboards.figures.draw import draw
from iclbench.runs.plan import resolve
from iclbench.sweeps.files import expand, read_sweep_file

ROOT = Path(__file__).parents[2]
STUDIES = sorted([*ROOT.glob("tasks/*/sweeps/*.toml"), *ROOT.glob("plugins/*/sweeps/*.toml")])


def short(path: Path) -> dict:
    """The study with one step of training, one seed, few and short prompts, and small systems."""
    content = tomllib.loads(path.read_text("utf-8"))
    if takes_examples(content):
        content["defaults"]["task_args"] = {"examples": 4}
    small = {"batch": 4, "learning_rate": 1e-6}
    content["defaults"] |= {"seeds": 1, "eval_prompts": 8}
    # A budget would set the steps.
    content["defaults"].pop("budget", None)
    for part in (content["defaults"], *content["grid"]):
        if "recipe_args" in part or part is content["defaults"]:
            asked = part.get("recipe_args", {})
            kept = {k: v for k, v in asked.items() if k not in {"steps", "batch", "learning_rate"}}
            steps = asked.get("steps", 1)
            steps = list(range(1, len(steps) + 1)) if isinstance(steps, list) else 1
            part["recipe_args"] = {**kept, **small, "steps": steps}
        if isinstance(part.get("task_args"), dict) and "iterates" in part["task_args"]:
            part["task_args"] = {**part["task_args"], "iterates": 3}
        if "256" in str(part.get("task_args", {}).get("evaluate")):
            part["task_args"] = {**part["task_args"], "evaluate": "2-9,16"}
    return content


def takes_examples(content: dict) -> bool:
    """Whether the study leaves the tasks' arguments as they are, and their examples are one."""
    parts = (content["defaults"], *content["grid"])
    if any("task_args" in part for part in parts):
        return False
    names = {name for part in parts for name in as_list(part.get("task", []))}
    return all("examples" in host().load("task", n, Task).Config.model_fields for n in names)


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_there_are_studies():
    assert len(STUDIES) >= 11


def sizes() -> list:
    """The further sizes of studies whose data are here."""
    return [
        pytest.param(path, size, id=f"{path.parents[1].name}-{path.stem}-{size}")
        for path in STUDIES
        for size in read_sweep_file(path).sizes
        if has_data(path, size)
    ]


def has_data(path: Path, size: str) -> bool:
    task_args = read_sweep_file(path).sized(size).defaults.get("task_args", {})
    images = task_args.get("images", "emoji")
    return "/" not in images or Path(images).exists()


def without_reference(grid: dict) -> dict:
    """The grid without its name, and without weights that another grid leaves."""
    return {
        key: value
        for key, value in grid.items()
        if key != "name" and not (key in {"weights", "init"} and str(value).startswith("@"))
    }


@pytest.mark.parametrize(("path", "size"), sizes())
def test_every_cell_of_a_further_size_can_be_planned(path, size):
    file, missing = read_sweep_file(path).sized(size), []
    for grid in file.grid:
        specs = [RunSpec(**cell) for cell in expand(without_reference(grid), file.defaults)]
        assert specs
        missing += [reason for spec in specs if (reason := lacks_data(spec))]
    if missing:
        pytest.skip(missing[0])


def lacks_data(spec):
    """Plan a cell; returns why it can't be if only what `make data` fetches is missing."""
    try:
        assert resolve(spec).spec.id
    except UsageError as error:
        if "`make data`" not in str(error):
            raise
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("path", STUDIES, ids=lambda p: f"{p.parents[1].name}-{p.stem}")
def test_every_cell_can_be_run_and_the_figure_drawn(path, tmp_path):
    result = sweep(short(path), out=tmp_path)
    assert not result.failures
    figure = read_sweep_file(path).figure
    if figure is not None:
        assert draw(figure, result.records).data
