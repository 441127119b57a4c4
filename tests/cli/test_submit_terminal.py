"""`iclbench submit` on a terminal: a line for each record, not a page of Markdown."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tiny import TASK, TINY


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_without_a_standard_output_records_are_examined(cli, tmp_path):
    cli("run", "--model", "zero", *TASK, *TINY, "--out", tmp_path / "out")
    words = ("submit", tmp_path / "out", "--to", tmp_path / "boards", "--check")
    command = [sys.executable, "-m", "iclbench", *map(str, words)]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    done = subprocess.run(closed, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_submit_prints_a_line_for_each_record_on_a_terminal(cli, tmp_path, monkeypatch):
    cli("run", "--model", "zero,averaging", *TASK, *TINY, "--out", tmp_path / "out")
    words = ("submit", tmp_path / "out", "--to", tmp_path / "boards", "--check")
    assert cli(*words).out.startswith("## 2 records, all ")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    lines = cli(*words).out.splitlines()
    assert len(lines) == 2
    assert all(" facts hold; " in line and ": digits " in line for line in lines), lines
