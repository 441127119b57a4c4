"""findings.md: what papers found, the criterion of each finding, and the verdict here."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from ..console import counted
from . import verdict_words as words
from .descriptions import Descriptions
from .escaping import markdown
from .findings import Judgement
from .page_parts import GENERATED


def findings_page(judgements: Sequence[Judgement], about: Descriptions) -> str:
    """The page as Markdown: counts of the verdicts, and a line per finding with its criterion.

    Own questions, which their source does not answer, follow the claims of papers.
    """
    claims, questions = words.claims(judgements), words.own_questions(judgements)
    meanings = "; ".join(f"*{name}*: {text}" for name, text in words.VERDICTS.items())
    parts = [
        f"{GENERATED}\n\n# Findings of papers",
        (f"{words.tests(claims)}, {words.summary(claims)}." if claims else "")
        + _own_counted(questions),
        "The criteria are in [findings.toml](findings.toml), each with the day on which it was "
        "written: before the study was run, unless it says *after the run*. "
        f"{markdown(words.MARK_LEGEND)} A criterion for a larger budget may be newer than the "
        "records of a smaller one. A verdict depends only on the study's records: the number over "
        "all seeds must lie in the range, and so must the numbers of most single seeds, where they "
        "are known. "
        "Numbers are medians over prompts unless the criterion says mean. Most papers report "
        "means, which a few prompts or one diverged seed can dominate; *by means* shows where they "
        f"would give another verdict. {meanings}. "
        "[All tasks](README.md)",
    ]
    if claims:
        parts += ["## Claims of papers", _table(claims, 1, about)]
    if questions:
        parts += ["## Own questions", words.OWN_LEGEND, _table(questions, 1 + len(claims), about)]
    parts += [
        "## Criteria",
        "\n".join(
            f"{number}. {markdown(judgement.finding.criterion)} Written {words.written(judgement)}."
            + (f" *{markdown(judgement.finding.remark)}*" if judgement.finding.remark else "")
            for number, judgement in enumerate([*claims, *questions], start=1)
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _own_counted(judgements: Sequence[Judgement]) -> str:
    count = counted(len(judgements), "own question")
    return f" {count}, {words.summary(judgements)}." if judgements else ""


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
