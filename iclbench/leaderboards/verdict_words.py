"""A finding's verdict in words: its name, its number, its seeds and setting, and how many agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from ..api.budget import Budget
from ..api.record import Record
from ..console import counted
from . import formats
from .descriptions import Descriptions
from .findings import Finding, Judgement, Verdict
from .wording import duration

#: Follow a verdict whose criterion was written after the run, and one that was changed.
MARK, CHANGED_MARK = "*", "§"
MARK_LEGEND = (
    f"{MARK} marks criteria written after the run, {CHANGED_MARK} those changed when their verdict "
    "was known."
)
#: What an own question is.
OWN_LEGEND = (
    "The named paper does not answer own questions; their verdicts are: holds, holds in kind, not "
    "shown, does not hold."
)

#: What the verdicts mean, in the order of the pages.
VERDICTS: dict[Verdict, str] = {
    "reproduced": "the number is in the range of the paper's claim",
    "in kind": "the number is in a wider range, which the criterion states, or in the range of the "
    "claim with one trained seed",
    "not shown": "the number is in no range, or most single seeds are not in its range; or one "
    "trained seed contradicts the claim; or the run has a flaw, seen afterwards, so that it can't "
    "decide",
    "contradicted": "the number is in the range that contradicts the claim, which the criterion "
    "states, at this budget",
    "not run": "the study has no record at this budget yet, or its records give no single number",
}
#: What the verdicts on own questions are called: there is no claim to reproduce.
_OF_OWN: dict[Verdict, str] = {
    "reproduced": "holds",
    "in kind": "holds in kind",
    "contradicted": "does not hold",
}
#: When a criterion got its present form.
When = Literal["before the run", "after the run", "changed after the verdict"]
_WRITTEN: dict[When, str] = {
    "before the run": "written before the run",
    "after the run": "written after the run",
    "changed after the verdict": "changed when the verdict was known",
}
_PLURAL = {"holds": "hold", "holds in kind": "hold in kind", "does not hold": "do not hold"}


def verdict_name(verdict: Verdict, own_question: bool = False) -> str:
    """What a verdict is called, on a claim of a paper or on an own question."""
    return _OF_OWN.get(verdict, verdict) if own_question else verdict


def marked(judgement: Judgement) -> str:
    """The verdict's name, with the mark of a criterion that was written late or changed."""
    finding = judgement.finding
    name = verdict_name(judgement.verdict, finding.own_question)
    return name + (CHANGED_MARK if finding.changed else MARK * finding.after_run)


def written(judgement: Judgement) -> str:
    """The day on which the criterion was written, and whether its verdict could be known by then.

    A criterion that was changed has the day of its change.
    """
    return f"{judgement.finding.written}, {when(judgement.finding)}"


def when(finding: Finding) -> When:
    """Whether the criterion was written before the run, or what was known by then."""
    if finding.changed:
        return "changed after the verdict"
    return "after the run" if finding.after_run else "before the run"


def remarks(finding: Finding) -> str:
    """What limits the verdict, in sentences: a remark, a flaw, and how the criterion changed."""
    parts = [finding.remark]
    parts += [f"Flaw: {finding.flaw}"] if finding.flaw else []
    parts += [f"Changed: {finding.changed}"] if finding.changed else []
    return " ".join(filter(None, parts))


def kind_of_number(finding: Finding) -> str:
    """What the number is: a ratio, a difference, or the name of its metric."""
    if finding.compare != "value":
        return finding.compare
    value = finding.first
    return formats.in_words(value.metric or str(value.analysis).rpartition(".")[2])


def number(judgement: Judgement) -> str:
    """The number with its kind, such as `ratio 9.63`; empty without one."""
    if judgement.number is None:
        return ""
    return f"{kind_of_number(judgement.finding)} {formats.short(judgement.number)}"


def by_seed(judgement: Judgement) -> str:
    """The number of each of several seeds; empty where there is only one or none is known."""
    if len(judgement.by_seed) < 2:
        return ""
    return ", ".join(map(formats.short, judgement.by_seed))


def lowered(judgement: Judgement) -> str:
    """Why the verdict is weaker than the number's, as a sentence; empty where it is not."""
    if not judgement.is_lowered:
        return ""
    is_shown = judgement.verdict == "in kind"
    return "One seed shows it in kind at most." if is_shown else "One seed contradicts nothing."


def seeds(judgement: Judgement) -> str:
    """How many seeds were trained, and how many diverged, or that nothing was trained.

    Empty without records.
    """
    if not judgement.records:
        return ""
    # A record may be both sides of a comparison.
    by_id = {record.id: record for record in judgement.records}
    trained = [r for r in by_id.values() if r.spec.origin == "trained"]
    counts = sorted({len(r.seeds) for r in trained})
    if not counts:
        return "no training"
    many = f"{'–'.join(map(str, counts[:1] + counts[1:][-1:]))} seeds"
    diverged = sum(seed.diverged_at is not None for r in trained for seed in r.seeds)
    among = f" of {sum(len(r.seeds) for r in trained)}" if len(trained) > 1 else ""
    ended = f", {diverged}{among} diverged" if diverged else ""
    return ("one seed" if counts == [1] else many) + ended


def setting(judgement: Judgement, about: Descriptions, most_arguments: int | None = None) -> str:
    """The budget of training, and the task's arguments and dtype that all records share, on a line.

    Without a dtype it is float32.
    """
    trained = [r for r in judgement.records if r.spec.origin == "trained"]
    times = dict.fromkeys(filter(None, map(_time, trained)))
    steps = dict.fromkeys(filter(None, (_steps(r) for r in trained if not _time(r))))
    of_steps = [f"{' and '.join(f'{n:,}' for n in steps)} steps"] if steps else []
    budget = " and ".join([*of_steps, *times])
    arguments = [
        about.task(r.spec.task).list_of_settings(r.main.task_args) for r in judgement.records
    ]
    # A list, such as the sizes of a curve, is no setting of one number.
    shared = [
        text
        for text in (arguments[0] if arguments else ())
        if "," not in text and all(text in other for other in arguments)
    ]
    dtypes = {record.spec.dtype for record in judgement.records} - {"float32"}
    return ", ".join(filter(None, [budget, *shared[:most_arguments], *sorted(dtypes)]))


def _time(record: Record) -> str:
    """The time that a seed had; empty for a training without a budget."""
    with suppress(ValueError):
        budget = Budget.parse(record.spec.budget or "")
        return f"{duration(budget, 'GPU' if budget.on_gpu else 'core')} per seed"
    return ""


def _steps(record: Record) -> int:
    """The steps of training; 0 where they are unknown."""
    steps = record.spec.recipe_args.get("steps")
    return steps if isinstance(steps, int) else 0


class Count(NamedTuple):
    """How many judgements have a verdict, and what it is called."""

    verdict: Verdict
    name: str
    number: int


class Crossing(NamedTuple):
    """How many judgements have each verdict, by criteria of one time; `total` is of the line."""

    when: str
    numbers: tuple[int, ...]

    @property
    def total(self) -> int:
        """All judgements by criteria of that time."""
        return sum(self.numbers)


def claims(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The judgement on each claim of a paper: where there are several, by the longest training."""
    return [one for one in judgements if not _is_apart(one.finding)]


def _is_apart(finding: Finding) -> bool:
    return finding.own_question or finding.shorter_run


def shorter_runs(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The judgements on claims that another finding tests with more training."""
    return [one for one in judgements if one.finding.shorter_run and not one.finding.own_question]


def shorter_runs_sentence(judgements: Iterable[Judgement]) -> str:
    """How many tests of claims had less training, and their verdicts; empty without any."""
    shorter = shorter_runs(judgements)
    if not shorter:
        return ""
    tests = counted(len(shorter), "test")
    return f"{tests} of the same claims with less training, {summary(shorter)}."


def own_questions(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The judgements on own questions."""
    return [judgement for judgement in judgements if judgement.finding.own_question]


def counts(judgements: Sequence[Judgement]) -> list[Count]:
    """How often each verdict occurs, in the order of the pages; all on claims, or all own."""
    result = []
    for verdict in VERDICTS:
        members = [judgement.finding for judgement in judgements if judgement.verdict == verdict]
        if members:
            name = verdict_name(verdict, members[0].own_question)
            name = _PLURAL.get(name, name) if len(members) > 1 else name
            result.append(Count(verdict, name, len(members)))
    return result


def crossed(judgements: Sequence[Judgement]) -> tuple[list[Verdict], list[Crossing]]:
    """The verdicts that occur, and a line for each time of writing and for all, with the counts."""
    verdicts = [verdict for verdict in VERDICTS if any(o.verdict == verdict for o in judgements)]
    lines: list[tuple[str, list[Judgement]]] = [
        (kind, members)
        for kind in _WRITTEN
        if (members := [judgement for judgement in judgements if when(judgement.finding) == kind])
    ]
    lines += [("all", list(judgements))] if len(lines) > 1 else []
    return verdicts, [
        Crossing(name, tuple(sum(o.verdict == v for o in members) for v in verdicts))
        for name, members in lines
    ]


def foretold(judgements: Sequence[Judgement]) -> str:
    """How many criteria were written before the run, and the verdicts by these."""
    members = [judgement for judgement in judgements if when(judgement.finding) == "before the run"]
    criterion = "a criterion" if len(members) == 1 else "criteria"
    text = f"{len(members) or 'none'} of them tested by {criterion} written before the run"
    named = ", ".join(f"{count.number} {count.name}" for count in counts(members))
    return f"{text}: {named}" if named else text


def summary(judgements: Sequence[Judgement]) -> str:
    """The counts of the verdicts in a sentence, those by criteria of before the run first."""
    parts = []
    for kind, text in _WRITTEN.items():
        members = [o for o in judgements if when(o.finding) == kind]
        if members:
            named = ", ".join(f"{count.number} {count.name}" for count in counts(members))
            criteria = "a criterion" if len(members) == 1 else "criteria"
            parts.append(f"by {criteria} {text}: {named}")
    return "; ".join(parts)


def by_means(judgement: Judgement) -> str:
    """The verdict and the number by means instead of medians, where that verdict is another."""
    of_means = judgement.of_means
    if of_means is None or of_means.verdict == judgement.verdict:
        return ""
    return f"{verdict_name(of_means.verdict, judgement.finding.own_question)}, {number(of_means)}"
