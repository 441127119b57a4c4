"""Fixtures for tests of runs: stored records, and the storytelling task with its graders."""

from __future__ import annotations

import shutil
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
    """The path of a trained record in a copy of the store."""
    folder = shutil.copytree(store.folder, tmp_path / "copy")
    return next(p for p in RecordStore(folder).paths() if "baseconv" in p.name)


@pytest.fixture(scope="session")
def sound(tmp_path_factory) -> Path:
    """Records to forge: trained ones, a construction, solvers at the floor and with a curve."""
    folder = tmp_path_factory.mktemp("sound")
    run(model="baseconv", **TINY, out=folder)
    run(model="baseconv", **{**TINY, "recipe_args": {"steps": 60}}, out=folder)
    run(model="least-squares-qr", **{**TINY, "eval_prompts": 256}, out=folder)
    run(model="gradient-descent", **{**TINY, "task": "least-squares-prefixes"}, out=folder)
    built = run(model="baseconv", **TINY, weights="gd-causal", out=folder)
    alone = {**TINY, "seeds": 1, "model_args": built.spec.model_args}
    run(model="baseconv", **alone, out=folder)
    return folder


@pytest.fixture
def records(sound, tmp_path) -> Path:
    """A copy of the sound records."""
    return Path(shutil.copytree(sound, tmp_path / "records"))
