"""`iclbench submit` on a terminal: a line for each record, not a page of Markdown."""

from __future__ import annotations

from tiny import TASK, TINY


def test_submit_prints_a_line_for_each_record_on_a_terminal(cli, tmp_path, monkeypatch):
    cli("run", "--model", "zero,averaging", *TASK, *TINY, "--out", tmp_path / "out")
    words = ("submit", tmp_path / "out", "--to", tmp_path / "boards", "--check")
    assert cli(*words).out.startswith("## 2 records, all ")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    lines = cli(*words).out.splitlines()
    assert len(lines) == 2
    assert all(" facts hold; " in line and ": digits " in line for line in lines), lines
