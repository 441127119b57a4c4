"""Proofs in records: who has checked what they say, and with which code."""

from __future__ import annotations

from pathlib import Path

from ..api.errors import RecordError
from ..api.record import Proof, Record
from ..devices import environment, find_device
from .code import checking_code
from .report import date_now
from .store import RecordStore, read_record, require_place


def with_proof(record: Record, device: str = "auto") -> Record:
    """A record that `verify` has just found to hold on `device`, with the proof that it has."""
    proof = Proof(
        kind="evaluated",
        created=date_now(),
        environment=environment(find_device(device)),
        plugins=checking_code(record),
    )
    return record.model_copy(update={"proof": proof}).sealed()


def is_retrained(record: Record) -> bool:
    """Whether the record's proof says that its training was repeated, which no author may write."""
    return record.proof is not None and record.proof.kind == "retrained"


def without_proof(record: Record) -> Record:
    """What the record's author wrote."""
    return record.model_copy(update={"proof": None}).sealed()


def repeats(published: Record, record: Record) -> bool:
    """Whether training gave the record again, with the same bits, as the published one says.

    That one has the time and machine of the repetition, so only the results are the same.
    """
    proof = published.proof
    if not is_retrained(published) or proof is None or not proof.same_bits:
        return False
    both = (published, record)
    files, others = ((one.weights_file, one.main.values) for one in both)
    return published.id == record.id and files == others


def write_proof(path: Path, proved: Record, verified: Record) -> None:
    """Write a record with its proof over the one in `path`.

    Raises RecordError if that is not its place in a store, or if the file no longer holds the
    record that was verified: verifying takes time, in which another process may replace it.
    """
    path = path.resolve()
    require_place(path, proved)
    if read_record(path).digest != verified.digest:
        raise RecordError(f"{path}: it was replaced while it was verified; verify it again")
    RecordStore(path.parent.parent).write(proved)
