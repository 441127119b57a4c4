"""findings.md: what papers found, the criterion of each finding, and the verdict here."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from . import verdict_words as words
from .descriptions import Descriptions
from .escaping import markdown
from .findings import Outcome
from .page_parts import GENERATED


def findings_page(outcomes: Sequence[Outcome], about: Descriptions) -> str:
    """The page as Markdown: counts of the verdicts, and a line per finding with its criterion.

    Own questions, which their source does not answer, follow the claims of papers.
    """
    claims, questions = words.claims(outcomes), words.own_questions(outcomes)
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
            f"{number}. {markdown(outcome.finding.criterion)} Written {words.written(outcome)}."
            + (f" *{markdown(outcome.finding.remark)}*" if outcome.finding.remark else "")
            for number, outcome in enumerate([*claims, *questions], start=1)
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _own_counted(outcomes: Sequence[Outcome]) -> str:
    name = "own question" if len(outcomes) == 1 else "own questions"
    return f" {len(outcomes)} {name}, {words.summary(outcomes)}." if outcomes else ""


def _table(outcomes: Sequence[Outcome], first: int, about: Descriptions) -> str:
    lines = [
        {
            "": str(number),
            "claim": markdown(outcome.finding.claim),
            "source": markdown(outcome.finding.source),
            "verdict": f"**{markdown(words.marked(outcome))}**",
            "number": words.number(outcome),
            "by seed": words.by_seed(outcome),
            "by means": words.by_means(outcome),
            "seeds": words.seeds(outcome),
            "setting": markdown(words.setting(outcome, about)),
            "criterion written": words.written(outcome),
            "records": f"`studies/{outcome.finding.records}`",
        }
        for number, outcome in enumerate(outcomes, start=first)
    ]
    align = ("right", *["left"] * 10)
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True, colalign=align)
