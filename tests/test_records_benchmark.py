"""The benchmark of records writes records that are shown on many boards."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks import records
from benchmarks.process import used_by
from benchmarks.records import many
from iclbench import RecordStore
from iclbench.leaderboards.reading import sound_boards


def test_its_records_are_sound_and_on_as_many_boards(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "BOARDS", 3)
    many(tmp_path, 7)
    problems = []
    boards = sound_boards(RecordStore(tmp_path), problems.append)
    assert problems == []
    assert sorted(len(board.rows) for board in boards) == [2, 2, 3]


def test_the_memory_of_a_process_is_its_own():
    pytest.importorskip("resource", reason="only Unix counts a process's memory in this way")
    small, large = (used_by("-c", f"len(b'x' * {n})") for n in (1, 300_000_000))
    assert min(small[:3]) > 0
    assert large.gigabytes - small.gigabytes > 0.25
    with pytest.raises(subprocess.CalledProcessError):
        used_by("-c", "raise SystemExit(3)")
