"""Fixtures for tests of runs: stored records, and the storytelling task with its graders."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import TINY, Fake
from storytelling import Forgetful, Length, Paid, Ranked, Storyteller

from iclbench import RecordStore, run


@pytest.fixture
def fake(provide) -> None:
    """Provide the model `fake`, which has constructions."""
    provide("model", "fake", Fake)


@pytest.fixture
def storytelling(provide) -> None:
    """Provide the storytelling tasks and their graders."""
    for task in (Storyteller, Ranked, Forgetful):
        provide("task", task.name, task)
    for grader in (Length, Paid):
        provide("grader", grader.name, grader)


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> RecordStore:
    """Records of two solvers and of a trained model; not to be written to."""
    folder = tmp_path_factory.mktemp("records")
    for model in ("least-squares-qr", "baseconv"):
        run(model=model, **TINY, out=folder)
    run(model="zero", **{**TINY, "task": "least-squares-prefixes"}, out=folder)
    return RecordStore(folder)


@pytest.fixture
def copied(store, tmp_path) -> Path:
    """The path of a trained record, copied with its files into a folder of the test."""
    path = next(p for p in store.paths() if "baseconv" in p.name)
    for file in path.parent.glob(path.stem + "*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path / path.name
