"""Importing iclbench, its help and its lists import no heavy module."""

from __future__ import annotations

from importlib import metadata

import pytest
from support import run_python

from iclbench import run

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


def test_a_run_imports_no_pandas(tmp_path):
    program = "import sys, iclbench.runs.run; print('pandas' in sys.modules)"
    done = run_python("-c", program, path=tmp_path)
    assert (done.returncode, done.stdout) == (0, "False\n")


def test_boards_are_made_and_printed_without_torch_and_pandas(tmp_path):
    run(model="zero", task="least-squares", eval_prompts=32, out=tmp_path / "records")
    words = ["leaderboard", "show", str(tmp_path / "records")]
    program = (
        f"import sys; sys.argv[1:] = {words}\nfrom iclbench.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print({'torch', 'pandas'} & set(sys.modules))"
    )
    done = run_python("-c", program, path=tmp_path)
    assert "least-squares v" in done.stdout
    assert done.stdout.endswith("set()\n")
