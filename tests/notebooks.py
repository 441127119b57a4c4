"""Running notebooks without a Jupyter server: the cells of each in one namespace.

`python tests/notebooks.py FILE…` runs notebooks and writes their output into them; with `-`, it
prints them instead.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def run_notebook(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the output of every code cell, run in the current folder."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    for cell in notebook["cells"]:
        done = dict(cell)
        if cell["cell_type"] == "code":
            done["outputs"] = _run_cell("".join(cell["source"]), namespace)
        cells.append(done)
    return {**notebook, "cells": cells}


def _run_cell(source: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell prints, and the value of its last expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "a cell", "exec"), namespace)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "a cell", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return outputs


def main(paths: list[str]) -> None:
    """Run each notebook in an empty folder and write its output into it; `-` prints it instead."""
    printed = "-" in paths
    for file in [Path(path).resolve() for path in paths if path != "-"]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            done = run_notebook(json.loads(file.read_text("utf-8")))
            os.chdir(file.parent)
        text = json.dumps(done, indent=1, ensure_ascii=False) + "\n"
        if printed:
            print(text)
        else:
            file.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
