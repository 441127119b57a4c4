"""`iclbench verify --write` and shifts where a folder can't be written: told before the work."""

from __future__ import annotations

import json

import pytest
from tiny import TASK, TINY

from iclbench import RecordStore, UsageError
from iclbench.cli import verify
from iclbench.runs import shift_records


def test_a_record_that_is_given_twice_is_verified_once(cli, tmp_path):
    cli("run", "--model", "zero,averaging", *TASK, *TINY, "--out", tmp_path)
    first, _ = RecordStore(tmp_path).paths()
    outcome = cli("verify", first, tmp_path, first)
    assert outcome.code == 0
    assert "2 of 2 records hold" in outcome.out


@pytest.mark.parametrize("module", [verify, shift_records])
def test_a_folder_that_cannot_be_written_is_told_first(cli, tmp_path, monkeypatch, module):
    cli("run", "--model", "zero", *TASK, *TINY, "--out", tmp_path)
    (path,) = RecordStore(tmp_path).paths()

    def refuse(folder):
        raise UsageError(f"the output folder {folder} can't be written")

    monkeypatch.setattr(module, "require_writable", refuse)
    words = {verify: ("verify", "--write", path), shift_records: (
        "run", "--weights", path, "--shift", "quadrants")}[module]  # fmt: skip
    outcome = cli(*words)
    assert (outcome.code, outcome.out) == (2, "")
    assert "can't be written" in outcome.err
    assert cli("verify", path).code == 0


def test_a_damaged_record_has_a_line_among_the_facts(cli, tmp_path):
    cli("run", "--model", "zero,averaging", *TASK, *TINY, "--out", tmp_path)
    damaged, _ = RecordStore(tmp_path).paths()
    damaged.write_text(damaged.read_text().replace('"seeds"', '"sedes"', 1))
    outcome = cli("verify", tmp_path, "--all", "--format", "json")
    assert outcome.code != 0
    lines = [line for line in json.loads(outcome.out) if line["record"] == str(damaged)]
    assert [line["outcome"] for line in lines] == ["can't be verified"]
    assert lines[0]["fact"]
