"""Tables of measurements name the command, the commit and the machine that made them."""

from __future__ import annotations

import json

from benchmarks.measured import facts, measured, publish, text
from iclbench.devices import cpu_name


def test_a_table_says_where_it_is_from_and_is_printed_again_from_its_file(tmp_path, capsys):
    content = measured("python -m benchmarks.x", [{"what": "a", "s": "1.50"}])
    publish(content, tmp_path / "x.json")
    printed = capsys.readouterr().out
    assert printed.rstrip() == text(json.loads((tmp_path / "x.json").read_text()))
    first, _, table = printed.partition("\n\n")
    for fact in ("`python -m benchmarks.x`", content["commit"], content["torch"], "load average"):
        assert fact in first
    assert "| a      | 1.50 |" in table


def test_the_circumstances_are_those_of_a_single_row_and_the_processor_a_record_s(monkeypatch):
    content, row = measured("python -m benchmarks.x", []), facts()
    assert {name: content[name] for name in row} == row
    assert row["processor"] == cpu_name()
    monkeypatch.setattr("benchmarks.measured.cpu_name", lambda: None)
    assert facts()["processor"]  # where the system does not say, the architecture


def test_a_system_without_a_load_average_leaves_it_out(monkeypatch):
    monkeypatch.delattr("os.getloadavg", raising=False)
    content = measured("python -m benchmarks.x", [])
    assert content["load"] is None
    assert f"{content['cores']} cores, torch" in text(content)
