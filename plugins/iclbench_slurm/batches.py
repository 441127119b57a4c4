"""Batches: the job arrays that were submitted from a folder, each described by a file there.

The file is written before the array is submitted, and the array has the batch's name in the queue.
So a submission that is killed leaves no job that nobody knows.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from iclbench import write_atomically

PREFIX = "iclbench-"
#: A submission takes at most this long, from the batch's file to Slurm's answer.
SUBMISSION_SECONDS = 120.0


@dataclass
class Batch:
    """A job array: its name in the queue, its jobs, and their numbers once Slurm has given them.

    `cancelled` are the indices of jobs that were cancelled from here: they have not failed.
    `written` is when the batch was new, in seconds since 1970. `refused` says why Slurm took none.
    `user` is the number of the user who submits it; it is empty in files of earlier versions.
    """

    name: str
    number: int
    jobs: list[Any]
    slurm_ids: list[str]
    cancelled: list[int] = field(default_factory=list)
    written: float = 0.0
    refused: str = ""
    user: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether the user of this process has submitted it."""
        return self.user in {"", this_user()}

    @property
    def is_being_submitted(self) -> bool:
        """Whether another process may have written the file and still wait for Slurm's answer."""
        return not self.slurm_ids and time.time() - self.written < SUBMISSION_SECONDS

    @property
    def array(self) -> str:
        """Slurm's id of the whole array, once it is submitted."""
        return self.slurm_ids[0].split("_")[0]

    @property
    def ids(self) -> list[str]:
        """The ids of its jobs for iclbench."""
        return [self.job_id(index) for index in range(len(self.jobs))]

    def job_id(self, index: int) -> str:
        """The id of a job for iclbench; Slurm's own is not known before the submission."""
        return f"{self.name}_{index}"

    def outcome(self, folder: Path, index: int) -> Path:
        """Where a job writes its outcome."""
        return folder / "outcomes" / f"{self.job_id(index)}.json"

    def path(self, folder: Path) -> Path:
        """The file of the batch."""
        return folder / "batches" / f"{self.number:06d}.{self.name}.json"

    def write(self, folder: Path) -> None:
        """Write the file of the batch, atomically."""
        write_atomically(self.path(folder), json.dumps(asdict(self)).encode())


def new_batch(folder: Path, jobs: Sequence[Any]) -> Batch:
    """A batch of these jobs; its file comes after those of earlier batches."""
    numbers = [int(path.name.split(".")[0]) for path in _files(folder)]
    name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
    number = max(numbers, default=0) + 1
    return Batch(name, number, list(jobs), [], written=time.time(), user=this_user())


def this_user() -> str:
    """The number of the user of this process: one in a container may have no name."""
    return str(os.getuid())


def read_batches(folder: Path) -> list[Batch]:
    """The batches of a folder, oldest first."""
    return [Batch(**json.loads(path.read_text("utf-8"))) for path in _files(folder)]


def _files(folder: Path) -> list[Path]:
    return sorted((folder / "batches").glob("[0-9]*.json"))
