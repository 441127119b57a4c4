"""Importing iclbench, its help and its lists import no heavy module."""

from __future__ import annotations

from importlib import metadata

import pytest
from support import run_python

HEAVY = ("torch", "datasets", "tokenizers", "huggingface_hub", "tensorboard", "wandb", "mlflow")


@pytest.fixture
def run_without_heavy_modules(tmp_path):
    """Runs Python, first-party plugins alone, where importing a heavy module ends it."""
    for name in HEAVY:
        source = "raise SystemExit(f'{__name__} was imported')"
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    points = metadata.distribution("iclbench").entry_points.select(group="iclbench")
    chosen = ",".join(point.name for point in points)
    return lambda *arguments: run_python(*arguments, path=tmp_path, ICLBENCH_PLUGINS=chosen)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "import iclbench"),
        ("-m", "iclbench", "--help"),
        ("-m", "iclbench", "ls"),
        ("-m", "iclbench", "ls", "models", "--json"),
        ("-m", "iclbench", "plugins", "--strict"),
    ],
    ids=" ".join,
)
def test_looking_around_imports_no_heavy_module(run_without_heavy_modules, arguments):
    done = run_without_heavy_modules(*arguments)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["torch", "datasets", "tokenizers"])
def test_importing_a_heavy_module_would_be_noticed(run_without_heavy_modules, name):
    done = run_without_heavy_modules("-c", f"import {name}")
    assert (done.returncode, done.stderr) == (1, f"{name} was imported\n")


def test_making_and_printing_a_board_imports_no_pandas(tmp_path):
    modules = "iclbench.runs.run, iclbench.display.boards, iclbench.leaderboards.costs"
    done = run_python("-c", f"import sys, {modules}; print('pandas' in sys.modules)", path=tmp_path)
    assert (done.returncode, done.stdout) == (0, "False\n")
