"""The page of matrices of shifts goes on where a plugin's shifts raise."""

from __future__ import annotations

from iclbench.leaderboards.site import matrices


class Broken:
    """A task that no longer knows some argument."""

    @property
    def shifts(self):
        raise KeyError("an argument of before")


def test_a_task_whose_shifts_raise_has_no_summaries(board, monkeypatch):
    assert matrices._shift_summaries(board)
    monkeypatch.setattr(matrices, "load_task", lambda name, **args: Broken())
    assert matrices._shift_summaries(board) == {}
