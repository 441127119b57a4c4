"""Set-up that tests share: small runs, their records, and a Python without this process's state."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from iclbench import EvaluationContext, Metric, Record, RecordStore
from iclbench.runs.store import read_record

CPU = torch.device("cpu")


class Shown(Metric):
    """A metric whose names only a record tells: the first number of each answer."""

    name = "shown"

    def supports(self, task):
        return None

    def score(self, prediction, task, batch):
        return {"shown": prediction[:, 0, 0]}


#: Keyword arguments of a run that takes well under a second; only the model is missing.
TINY: dict[str, Any] = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "seeds": 2,
    "eval_prompts": 64,
}


def evaluation_context(batch_size: int = 40) -> EvaluationContext:
    """A context on the CPU with a fresh generator."""
    return EvaluationContext(CPU, torch.Generator(), None, batch_size)


def only_record(folder: Path) -> Record:
    """The one record in a folder; fails if there are several or none."""
    (path,) = RecordStore(folder).paths()
    return read_record(path)


@contextmanager
def limited_file_size(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes, as on a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run_python(*arguments: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this Python with `path` ahead of PYTHONPATH; the output is text."""
    folders = [str(path), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {"PYTHONPATH": os.pathsep.join(folders), "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **settings, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
