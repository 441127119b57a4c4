"""Submit records to published leaderboards: the checks, the copies and the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..api.errors import PLUGIN_FAILURES, RecordError, UsageError, problem_with, reason_of
from ..api.record import MAIN, Record
from ..api.tuning import tuning_bytes
from ..console import Reporter, counted
from ..files import RECORDS, nearest_existing, require_writable, write_atomically
from ..runs.additions import with_additions
from ..runs.comparison import Check
from ..runs.grading_facts import has_paid_grades
from ..runs.heldout import HeldOut, draw_salt, has_held_out, held_out_path, write_held_out
from ..runs.heldout_evaluation import evaluate_held_out
from ..runs.objects import OBJECTS_FOLDER, Objects
from ..runs.proofs import is_retrained, repeats, with_proof, without_proof
from ..runs.store import RecordStore, read_record
from ..runs.tuned import tuning_path
from ..runs.verify import require_holding
from ..sweeps.record_paths import real_path
from . import formats
from .argument_numbers import FOLLOWS
from .arguments import argument_pairs
from .board import comparable
from .copied_weights import (
    published_of_task,
    require_own_formula,
    require_own_training,
    require_own_weights,
)
from .escaping import markdown
from .groups import rows_of
from .labels import labels_of
from .page_parts import bullets, table_of
from .publishable import require_costs, require_publishable
from .row import Row


@dataclass(frozen=True)
class Submission:
    """A record that may be published, as a row of its own, with what `verify` measured."""

    path: Path
    record: Record
    row: Row
    checks: tuple[Check, ...]
    device: str
    new: bool


def store_in(leaderboards: Path) -> RecordStore:
    """The published records in a folder of leaderboards; raises UsageError for a file."""
    if (leaderboards / OBJECTS_FOLDER).is_dir():
        raise UsageError(f"{leaderboards} holds records: give the folder that holds it")
    store = RecordStore(leaderboards / RECORDS)
    existing = nearest_existing(store.folder)
    if not existing.is_dir():
        raise UsageError(f"{existing} is a file: records can't be copied into it")
    return store


def examine(
    path: Path, store: RecordStore, device_name: str = "auto", *, trusted: bool = False
) -> Submission:
    """Validate and verify one record; raises UsageError with the reason if it is refused.

    Its files must be sound and small enough, its arguments few, every fact that can be computed
    must hold, and it must not replace a published row or have the weights of one, or of a study's
    record by other settings. `trusted` as for `verify`.
    """
    record = read_record(path)
    if is_retrained(record) and path.resolve() != store.path(record.spec).resolve():
        raise RecordError(
            f"{path}: its proof says retrained; only `iclbench verify --retrain --write` on the "
            "published record may write that. Submit the record as the run left it"
        )
    require_publishable(path, record)
    new = _require_new(path, record, store)
    checks = require_holding(path, device_name, trusted=trusted)
    if new:
        require_costs(path, record)
        published = list(published_of_task(record, store))
        require_own_formula(path, record, published)
        require_own_weights(path, record, published)
        require_own_training(path, record, store.folder.parent)
    (row,) = rows_of({record.id: path}, [record])
    return Submission(path, record, row, tuple(checks), device_name, new)


def examine_all(
    paths: Sequence[Path],
    store: RecordStore,
    device_name: str = "auto",
    *,
    trusted: bool = False,
) -> tuple[list[Submission], list[str]]:
    """The submissions among the records, and the reasons why the others are refused."""
    accepted: list[Submission] = []
    refused: list[str] = []
    ids: dict[str, Path] = {}
    for path in {real_path(path): path for path in paths}.values():
        try:
            submission = examine(path, store, device_name, trusted=trusted)
            other = ids.setdefault(submission.record.id, path)
            if other != path:
                raise UsageError(f"{path}: same run as {other}")
            earlier = [(s.path, s.record) for s in accepted]
            require_own_formula(path, submission.record, earlier)
            require_own_weights(path, submission.record, earlier)
        except PLUGIN_FAILURES as error:
            refused.append(problem_with(path, error))
        else:
            accepted.append(submission)
    return accepted, refused


def publish(submission: Submission, store: RecordStore) -> Path:
    """Copy the record's files, then the record with its proof; returns the path in the store.

    A record gets what was not recorded yet when it was made. Its tuning goes to the
    folder of tunings beside the store.
    """
    target = store.path(submission.record.spec)
    if not submission.new:
        return target
    # Before anything is written: it evaluates, and may fail.
    complete = with_additions(submission.path, submission.record, submission.device)
    complete = with_proof(complete, submission.device)
    objects = Objects.beside(submission.path)
    for reference in submission.record.files():
        write_atomically(store.objects.path(reference), objects.read(reference))
    if submission.record.tuning is not None:
        tuning = submission.record.tuning
        write_atomically(store.folder.parent / tuning_path(tuning), tuning_bytes(tuning))
    return store.write(complete)


def add_held_out(submission: Submission, path: Path, salt: str) -> HeldOut | None:
    """Evaluate the published record in `path` on prompts that nobody knew, once.

    None for a row that gets no such evaluation, or that has one.
    """
    if not has_held_out(submission.record) or held_out_path(path).exists():
        return None
    held_out = evaluate_held_out(path, submission.record, salt, submission.device)
    write_held_out(path, held_out)
    return held_out


def publish_all(
    accepted: Sequence[Submission], store: RecordStore, *, held_out: bool, say: Reporter
) -> tuple[list[Path], list[str]]:
    """Copy the accepted records; returns their paths, and why some could not be copied.

    With `held_out`, they are evaluated on newly drawn prompts too. `say` gets a line for each file.
    """
    require_writable(store.folder)
    published: list[Path] = []
    failures: list[str] = []
    for submission in accepted:
        try:
            target = publish(submission, store)
            published.append(target)
            say(f"{'copied to' if submission.new else 'already published:'} {target}")
            if held_out and add_held_out(submission, target, draw_salt()) is not None:
                say(f"held out: {held_out_path(target)}")
        except PLUGIN_FAILURES as error:
            failures.append(f"{submission.path}: {reason_of(error)}")
    return published, failures


def is_settled(path: Path, store: RecordStore) -> bool:
    """Whether it is a published record that lacks no held-out evaluation."""
    if not real_path(path).is_relative_to(store.folder.resolve()):
        return False
    try:
        return held_out_path(path).exists() or not has_held_out(read_record(path))
    except RecordError:  # it is refused later, with the reason
        return False


def _require_new(path: Path, record: Record, store: RecordStore) -> bool:
    """Whether the row is new; raises RecordError if it would replace another.

    A solver's row that somebody has run again is the published one: nobody chose anything in it,
    and `verify` compares its numbers.
    """
    target = store.path(record.spec)
    if not target.exists():
        return True
    if record.spec.origin in FOLLOWS:
        return False
    published = read_record(target)
    submitted = _as_submitted(published, record) == without_proof(record).digest
    if not submitted and not repeats(published, record):
        raise RecordError(f"{path}: {target} is another record of this run; rows are not replaced")
    return False


def _as_submitted(published: Record, record: Record) -> str:
    """The digest of what its author wrote, without what `publish` has added."""
    if record.state_sizes is None:
        published = published.model_copy(update={"state_sizes": None})
    if record.main.answers is None:
        main = published.main.model_copy(update={"answers": None})
        evaluations = {**published.evaluations, MAIN: main}
        published = published.model_copy(update={"evaluations": evaluations})
    return without_proof(published).digest


def summary(accepted: Sequence[Submission], refused: Sequence[str]) -> str:
    """Markdown for a pull request: one row per record, the reasons of refusal, the commands."""
    checks = sum(len(s.checks) for s in accepted)
    labels = _labels([s.record for s in accepted])
    rows = [_line(s, labels[s.record.id]) for s in accepted]
    notes = [f"refused: {markdown(reason)}" for reason in refused]
    for what, count in (
        ("answers of language models", sum(s.record.spec.origin == "asked" for s in accepted)),
        ("grades of paid graders", sum(has_paid_grades(s.record) for s in accepted)),
    ):
        if count:
            where = counted(count, "record")
            notes.append(f"claimed, and not asked for again: the {what} in {where}")
    if not accepted:
        return f"## No record can be published\n\n{bullets(notes)}\n"
    commands = "\n".join(s.record.command for s in accepted)
    parts = [
        f"## {counted(len(accepted), 'record')}, all {checks:,} facts hold",
        table_of(rows),
        bullets(notes),
        f"Reproduce:\n\n```bash\n{commands}\n```",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def line_of(submission: Submission) -> str:
    """A line for a terminal: what was measured again, and the score."""
    row = submission.row
    ranking = row.record.ranking
    value = f"{formats.score_name(ranking)} {formats.score(row.score, ranking)}"
    facts = counted(len(submission.checks), "fact")
    return f"{submission.path}: all {facts} hold; {row.label}: {value}"


def _labels(records: Sequence[Record]) -> dict[str, str]:
    """The labels of records by their id, which tell those of one board apart."""
    return {
        record.id: label
        for group in comparable(records)
        for record, label in zip(group, labels_of(group), strict=True)
    }


def _line(submission: Submission, label: str) -> dict[str, str]:
    record, row = submission.record, submission.row
    ranking, spec, environment = record.ranking, record.spec, record.environment
    args = markdown(argument_pairs(record.main.task_args))
    plugins = ", ".join(f"{p.name} ({p.distribution} {p.version})" for p in record.plugins)
    return {
        "task": f"{markdown(record.main.title)} v{spec.task_version} ({args}) {spec.dtype}",
        "model": markdown(label) + ("" if submission.new else " (already published)"),
        "origin": markdown(formats.origin(row)),
        "ranked by": f"{ranking.statistic} {ranking.metric}",
        "value": formats.score(row.score, ranking),
        "95% interval": formats.score_interval(row),
        "1% worst": formats.number(row.worst, ranking.scale),
        "seeds": f"{row.seeds or ''}" + (f", {row.diverged} diverged" if row.diverged else ""),
        "steps × batch": formats.budget(row.steps, row.batch),
        "device": markdown(formats.device(environment.device, environment.threads)),
        "plugins": markdown(plugins),
    }
