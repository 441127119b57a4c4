"""Records that several tests of leaderboards share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from shown_pages import PICTURES, ROOT

from iclbench import Record, RecordStore, run
from iclbench.leaderboards.board import Board, boards, leaderboard
from iclbench.leaderboards.build import build
from iclbench.leaderboards.site.build import make_site
from iclbench.runs.store import read_record

LEAST_SQUARES = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4},
                 "eval_prompts": 64}  # fmt: skip


@pytest.fixture(scope="session")
def leaderboards(tmp_path_factory) -> Path:
    """A folder with `records`: three origins, two dtypes, a task with curves, one without digits.

    The first board of least-squares, float32, has five rows, of which two are trained.
    """
    folder = tmp_path_factory.mktemp("leaderboards")
    out = folder / "records"
    for layers in (1, 2):
        run(model="baseconv", **LEAST_SQUARES, recipe="smoke", model_args={"layers": layers},
            seeds=2, out=out)  # fmt: skip
    for dtype in ("float32", "float64"):
        run(model="least-squares-qr", **LEAST_SQUARES, dtype=dtype, out=out)
        run(model="zero", **LEAST_SQUARES, dtype=dtype, out=out)
    run(model="baseconv", **LEAST_SQUARES, weights="gd-causal", weights_args={"steps": 3}, out=out)
    run(model="gradient-descent", **{**LEAST_SQUARES, "task": "least-squares-prefixes"}, out=out)
    run(model="class-frequency", task="categorical", eval_prompts=32, out=out)
    return folder


@pytest.fixture(scope="session")
def built(leaderboards, tmp_path_factory) -> Path:
    """A copy of the same folder with its tables, and with a cited result of least-squares."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(leaderboards / "records", folder / "records")
    (folder / "cited.toml").write_text(
        """
        [[cited]]
        task = "least-squares"
        model = "a model of a paper"
        metric = "mean squared error"
        value = 1.5e-13
        approximate = true
        setting = "D = 5"
        differs = "its training"
        source = "A paper, Figure 1"
        """
    )
    build(folder)
    return folder


@pytest.fixture(scope="session")
def board(leaderboards) -> Board:
    """Its board of least-squares in float32."""
    return next(b for b in leaderboard(leaderboards / "records") if len(b.rows) == 5)


@pytest.fixture(scope="session")
def published_site(tmp_path_factory) -> Path:
    """The site of the published records, which takes minutes."""
    out = tmp_path_factory.mktemp("published") / "site"
    make_site(out, ROOT / "leaderboards", print)
    PICTURES.mkdir(parents=True, exist_ok=True)
    print(f"screenshots: {PICTURES}")
    return out


@pytest.fixture
def changed(leaderboards) -> Callable[..., Board]:
    """The same board with its records changed by a function."""

    def make(change: Callable[[Record], Record]) -> Board:
        store = RecordStore(leaderboards / "records")
        records = [change(read_record(path)) for path in store.paths()]
        return next(b for b in boards(records, store) if len(b.rows) == 5)

    return make
