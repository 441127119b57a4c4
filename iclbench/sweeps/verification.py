"""Verifying many records: those of a board together, on all cores, with the outcomes in order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from ..api.errors import PLUGIN_FAILURES, problem_with
from ..api.record import Record
from ..console import show_traceback
from ..runs.additions import with_additions
from ..runs.code import stale_code
from ..runs.comparison import Check
from ..runs.facts import claims
from ..runs.objects import Objects
from ..runs.proofs import is_retrained, with_proof, write_proof
from ..runs.retraining import TESTED, retrain
from ..runs.shared_prompts import shared_prompts
from ..runs.store import read_record
from ..runs.verify import verify
from ..training.threads import usable_cores
from .executors.local import Local, visible_gpus

#: The fewest records for which another process is worth its start, and the most of one job.
FEWEST, MOST = 8, 8


@dataclass(frozen=True)
class VerifyRequest:
    """What is asked of each record: to verify it, and after that to train it again or to prove it.

    Only a record that holds gets a proof, which `write` puts into it. Without `trusted`, records
    that name data or code are refused.
    """

    device: str = "auto"
    retrain: bool = False
    write: bool = False
    trusted: bool = False


@dataclass(frozen=True)
class Verified:
    """What verifying the record in `path` has given: checks, or the problem that prevents them.

    `stale` names the plugins whose code is not that which made the record; `retrained` says what
    training again has shown.
    """

    path: Path
    checks: list[Check] = field(default_factory=list)
    claims: dict[str, str] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    problem: str = ""
    retrained: str = ""

    @property
    def failing(self) -> list[Check]:
        """The checks that do not hold."""
        return [check for check in self.checks if not check.holds]


def default_workers(records: int, request: VerifyRequest) -> int:
    """A process per core, or per GPU where that is used, but none for a few records alone.

    A training uses all cores itself, and a GPU with a number is one place.
    """
    if request.retrain or ":" in request.device:
        return 1
    places = len(visible_gpus()) if request.device != "cpu" else 0
    return max(1, min(places or usable_cores(), records // FEWEST))


def verify_all(
    paths: Sequence[Path], request: VerifyRequest, workers: int
) -> Generator[Verified, None, None]:
    """Yield the outcome of every record, in the order of `paths`.

    Several workers are processes with one thread each. Nothing about one record stops the others.
    """
    if workers == 1:
        with shared_prompts():
            for path in paths:
                yield _outcome(path, request)
        return
    ended: dict[Path, Verified] = {}
    waiting, uses = deque(paths), Counter(paths)
    with closing(_outcomes(list(_parts(paths)), request, workers)) as outcomes:
        for outcome in outcomes:
            ended[outcome.path] = outcome
            while waiting and waiting[0] in ended:
                path = waiting.popleft()
                uses[path] -= 1
                # The checks of 100,000 records would not fit in memory.
                yield ended[path] if uses[path] else ended.pop(path)


def _outcomes(
    parts: Sequence[list[Path]], request: VerifyRequest, workers: int
) -> Generator[Verified, None, None]:
    """The outcomes of all parts, in any order.

    If a process dies, the records of its part are verified again one by one, so that only the
    record that ends its process can't be verified.
    """
    jobs = [(part, request) for part in parts]
    apart: list[list[Path]] = []
    with closing(Local().map(verify_job, jobs, workers)) as results:
        for index, result in results:
            part = parts[index]
            if not isinstance(result, BaseException):
                yield from result
            elif len(part) > 1:
                apart += [[path] for path in part]
            else:
                yield Verified(part[0], problem=f"{part[0]}: {result}")
    if apart:
        yield from _outcomes(apart, request, workers)


def _parts(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """At most so many records per job; those of a task are neighbours, and share prompts."""
    part: list[Path] = []
    for path in dict.fromkeys(paths):
        if part and (len(part) == MOST or path.parent != part[0].parent):
            yield part
            part = []
        part.append(path)
    if part:
        yield part


def verify_job(job: tuple[list[Path], VerifyRequest]) -> list[Verified]:
    """The outcomes of a job's records."""
    paths, request = job
    with shared_prompts():
        return [_outcome(path, request) for path in paths]


def _outcome(path: Path, request: VerifyRequest) -> Verified:
    try:
        checks, retrained = _checks(path, request)
        record = read_record(path)
        stale = stale_code(record)
        claimed = claims(record, Objects.beside(path), stale)
        if retrained:
            claimed = {name: text for name, text in claimed.items() if name not in TESTED}
        return Verified(path, checks, claimed, stale, retrained=retrained)
    except PLUGIN_FAILURES as error:
        show_traceback(error)
        return Verified(path, problem=problem_with(path, error))


def _checks(path: Path, request: VerifyRequest) -> tuple[list[Check], str]:
    """All checks of one record, and what training again has shown.

    It is only trained again where everything else holds.
    """
    record = read_record(path)
    checks = verify(path, request.device, trusted=request.trusted)
    if not all(check.holds for check in checks):
        return checks, ""
    proved, retrained = None, ""
    if request.retrain:
        outcome = retrain(path, request.device, trusted=request.trusted)
        checks += outcome.checks
        proved, retrained = outcome.record, outcome.outcome
    elif request.write:
        proved = _proved(path, record, request.device)
    if request.write and proved is not None:
        write_proof(path, proved, record)
    return checks, retrained


def _proved(path: Path, record: Record, device: str) -> Record | None:
    """The record with its proof renewed, or the old one where that says that it was trained again.

    A record gets what was not recorded yet when it was made. None if nothing changes.
    """
    complete = with_additions(path, record, device)
    if is_retrained(record):
        return None if complete is record else complete
    return with_proof(complete, device)
