"""The note of a training that did not stay on one platform."""

import pytest

from iclbench.training.platforms import MOST_NOTE, MOVED, moved_names, with_moves


@pytest.mark.parametrize("note", [None, "a reason", "one; two", "reasons " * 100])
@pytest.mark.parametrize("names", [["threads"], ["threads", "number of replicas"]])
def test_the_names_can_be_read_from_the_note_and_are_never_cut(note, names):
    kept = with_moves(note, names)
    assert len(kept) <= MOST_NOTE
    assert moved_names(kept) == names
    assert kept.startswith((note or MOVED)[:400])


def test_a_second_move_adds_its_names():
    kept = with_moves(with_moves("a reason", ["threads"]), ["torch", "threads"])
    assert kept == f"a reason; {MOVED}: other threads, torch"


@pytest.mark.parametrize("note", [None, "short", "reasons " * 100])
def test_without_a_move_the_note_stays(note):
    kept = with_moves(note, [])
    assert moved_names(kept) == []
    assert kept == note or len(kept) == MOST_NOTE
