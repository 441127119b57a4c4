"""findings.md: what papers found, the criterion of each finding, and the verdict here."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from ..console import counted
from . import verdict_words as words
from .descriptions import Descriptions
from .escaping import markdown
from .findings import Judgement
from .page_parts import GENERATED, bullets


def findings_page(judgements: Sequence[Judgement], about: Descriptions) -> str:
    """The page as Markdown: counts of the verdicts, and a line per finding with its criterion.

    Claims of papers come first, then their tests with less training, then own questions, which
    their source does not answer.
    """
    claims, shorter = words.claims(judgements), words.shorter_runs(judgements)
    questions = words.own_questions(judgements)
    parts = [
        f"{GENERATED}\n\n# Findings of papers",
        *_crossed(claims),
        bullets(
            filter(
                None,
                [words.shorter_runs_sentence(judgements), _own_questions(questions)],
            )
        ),
        "The criteria are in [findings.toml](findings.toml), each with the day on which it was "
        "written: before the study was run, unless it says otherwise. "
        f"{markdown(words.MARK_LEGEND)} A criterion for a larger budget may be newer than the "
        "records of a smaller one; the verdict on a claim is that of the longest training.",
        "A verdict depends only on the study's records: the number over all seeds must lie in the "
        "range, and so must the numbers of most single seeds, where they are known. Numbers are "
        "medians over prompts unless the criterion says mean. Most papers report means, which a "
        "few prompts or one diverged seed can dominate; *by means* shows where they would give "
        "another verdict. Records are in float32 unless the setting names another dtype. Models, "
        "prompts and trainings are smaller than the papers'; each study says by how much.",
        bullets(f"*{name}*: {text}" for name, text in words.VERDICTS.items()),
        "[All tasks](README.md)",
    ]
    sections = (
        ("Claims of papers", "", claims),
        ("The same claims with less training", "", shorter),
        ("Own questions", words.OWN_LEGEND, questions),
    )
    first = 1
    for title, legend, members in sections:
        if members:
            parts += [f"## {title}", *filter(None, [legend]), _table(members, first, about)]
            first += len(members)
    parts += [
        "## Criteria",
        "\n".join(
            f"{number}. {markdown(judgement.finding.criterion)} Written {words.written(judgement)}."
            + (f" *{markdown(remarks)}*" if (remarks := words.remarks(judgement.finding)) else "")
            for number, judgement in enumerate([*claims, *shorter, *questions], start=1)
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _crossed(claims: Sequence[Judgement]) -> list[str]:
    """How many claims there are, and their verdicts by when the criterion was written."""
    if not claims:
        return []
    verdicts, lines = words.crossed(claims)
    table = [
        {"criterion written": line.when, **dict(zip(verdicts, line.numbers, strict=True)),
         "total": line.total}
        for line in lines
    ]  # fmt: skip
    text = f"{counted(len(claims), 'claim')} of papers, {words.foretold(claims)}."
    return [text, tabulate(table, headers="keys", tablefmt="github")]


def _own_questions(questions: Sequence[Judgement]) -> str:
    """How many there are, and their verdicts, as a sentence; empty for none."""
    if not questions:
        return ""
    return f"{counted(len(questions), 'own question')}, {words.summary(questions)}."


def _table(judgements: Sequence[Judgement], first: int, about: Descriptions) -> str:
    lines = [
        {
            "": str(number),
            "claim": markdown(judgement.finding.claim),
            "source": markdown(judgement.finding.source),
            "verdict": f"**{markdown(words.marked(judgement))}**",
            "number": words.number(judgement),
            "by seed": words.by_seed(judgement),
            "by means": words.by_means(judgement),
            "seeds": words.seeds(judgement),
            "setting": markdown(words.setting(judgement, about)),
            "criterion written": words.written(judgement),
            "records": f"`studies/{judgement.finding.records}`",
        }
        for number, judgement in enumerate(judgements, start=first)
    ]
    align = ("right", *["left"] * 10)
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True, colalign=align)
