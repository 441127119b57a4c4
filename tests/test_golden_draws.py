"""The raw evaluation draws of every task version never change: published digests cover them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from iclbench import Task, load_task
from iclbench.plugins import host

ROWS = json.loads(Path(__file__).with_name("golden_draws.json").read_text("utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['task']} {row['args'] or ''}")
def test_the_raw_draws_never_change(row):
    task = load_task(row["task"], **row["args"])
    assert task.version == row["version"]
    draws = task.evaluation_draws(8, 0)
    hashes = {name: hashlib.sha256(v.tobytes()).hexdigest()[:16] for name, v in draws.items()}
    assert hashes == row["draws"]
    assert task.evaluation_digest(8, 0)[:16] == row["digest"]


def test_every_task_version_has_golden_draws():
    tasks = [host().load("task", entry.name, Task) for _, entry in host().entries("task")]
    assert {(task.name, task.version) for task in tasks} == {
        (row["task"], row["version"]) for row in ROWS
    }
