"""The benchmark of records writes records that are shown on many boards."""

from __future__ import annotations

from benchmarks import records
from benchmarks.records import many, seconds_of
from iclbench import RecordStore
from iclbench.leaderboards.reading import sound_boards


def test_its_records_are_sound_and_on_as_many_boards(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "BOARDS", 3)
    many(tmp_path, 7)
    problems = []
    boards = sound_boards(RecordStore(tmp_path), problems.append)
    assert problems == []
    assert sorted(len(board.rows) for board in boards) == [2, 2, 3]
    assert min(seconds_of("-c", "sum(range(10**6))")) > 0
