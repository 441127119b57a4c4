"""What Slurm's queue holds, from `squeue`; no accounting is needed."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from iclbench import RunError

from .batches import PREFIX, this_user
from .environment import environment_of_commands

#: Array, index within the array, name, state, reason.
FORMAT = "%F|%K|%j|%T|%r"
#: States of jobs that have not begun, or begin again.
WAITING = {"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
SECONDS = 60


@dataclass(frozen=True)
class InQueue:
    """A job in the queue: Slurm's id, and the reason why it waits."""

    slurm_id: str
    state: Literal["waiting", "running"]
    reason: str


def jobs_in_queue(users: Iterable[str] = ()) -> dict[str, InQueue]:
    """The jobs of this and other users by name and index, `NAME_INDEX`.

    Raises RunError without an answer.
    """
    whose = f"--user={','.join(sorted({this_user(), *users}))}"
    lines = command("squeue", whose, "--array", "--noheader", "--format", FORMAT).splitlines()
    jobs = {}
    for line in lines:
        array, index, name, state, reason = line.split("|", 4)
        if not name.startswith(PREFIX):
            continue
        alone = not index.isdigit()  # an array of one job is a job
        jobs[f"{name}_{0 if alone else index}"] = InQueue(
            slurm_id=array if alone else f"{array}_{index}",
            state="waiting" if state in WAITING else "running",
            reason=reason.strip() if state in WAITING else "",
        )
    return jobs


@functools.cache
def shows_jobs_of_others() -> bool:
    """Whether this user sees the jobs of others, which PrivateData=jobs hides."""
    lines = command("scontrol", "show", "config").splitlines()
    hidden = next((line for line in lines if line.startswith("PrivateData")), "")
    return this_user() == "0" or "jobs" not in hidden.partition("=")[2].strip().split(",")


def command(*words: str) -> str:
    """What a command of Slurm prints; raises RunError where it fails."""
    try:
        return subprocess.run(
            words, capture_output=True, encoding="utf-8", check=True, timeout=SECONDS,
            env=environment_of_commands(),
        ).stdout  # fmt: skip
    except FileNotFoundError:
        raise RunError(f"slurm: there is no {words[0]} on this machine") from None
    except subprocess.TimeoutExpired:
        raise RunError(f"slurm: {words[0]} gave no answer in {SECONDS} seconds") from None
    except subprocess.CalledProcessError as error:
        text = (error.stderr or error.stdout or "no message").strip().splitlines()
        raise RunError(f"slurm: {words[0]}: {text[-1] if text else error}") from None
