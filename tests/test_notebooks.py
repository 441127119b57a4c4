"""The example notebooks work, and their cells show what they show here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from notebooks import run_notebook
from support import run_python

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    """In a process of its own: a notebook may add plugins to its process."""
    done = run_python(str(Path(__file__).parent / "notebooks.py"), str(path), "-", path=tmp_path)
    assert done.returncode == 0, done.stderr
    kept, now = (
        [[output["output_type"] for output in cell.get("outputs", [])] for cell in cells["cells"]]
        for cells in (json.loads(path.read_text("utf-8")), json.loads(done.stdout))
    )
    assert kept == now
    assert sum(map(len, now)) >= 2


def test_there_are_notebooks_and_their_output_is_kept():
    assert [path.stem for path in NOTEBOOKS] == ["add_a_model", "run_a_model"]
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        assert any(cell.get("outputs") for cell in cells)
        assert cells[0]["source"][0].startswith("# ")


def test_a_cell_that_fails_is_noticed():
    cell = {"cell_type": "code", "source": ["x = 1\n", "x / 0"]}
    with pytest.raises(ZeroDivisionError):
        run_notebook({"cells": [cell]})
