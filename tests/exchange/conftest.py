"""A folder of two small records, made once."""

from __future__ import annotations

import shutil

import pytest
from support import TINY

from iclbench import run

SMALL = {"layers": 1, "width": 4}


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    out = tmp_path_factory.mktemp("records")
    run(**TINY, model="transformer", model_args=SMALL, recipe_args={"steps": 2}, out=out)
    run(task=TINY["task"], task_args=TINY["task_args"], model="zero", eval_prompts=64, out=out)
    return out


@pytest.fixture
def results(made_once, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(made_once, tmp_path / "made")


@pytest.fixture
def trained(results):
    """The record of the transformer."""
    (path,) = (results / "least-squares").glob("transformer-*.json")
    return path


@pytest.fixture
def refused(cli, tmp_path):
    """Pull, and check that it is refused in one line and leaves nothing."""

    def pull(message, *words, source="datasets/eve/board", code=2):
        out = tmp_path / "back"
        before = set(tmp_path.rglob("*"))
        outcome = cli("pull", source, "--out", out, *words)
        assert (outcome.code, outcome.err.count("\n")) == (code, 1), outcome.err
        assert message in outcome.err
        left = {path for path in tmp_path.rglob("*") if path.is_file()} - before
        assert {path.name for path in left} <= {"harnesses.json"}
        assert not out.exists()

    return pull
