"""How the site shows a finding: its badges, its number, and its setting."""

from __future__ import annotations

from collections.abc import Sequence

from .. import verdict_words as words
from ..descriptions import Descriptions
from ..findings import Outcome
from .figure import View
from .minus import with_minus


def finding_view(outcome: Outcome, about: Descriptions) -> View:
    """A finding with its verdict, as badges, cards and tables show it."""
    return {
        "finding": outcome.finding,
        "verdict": words.marked(outcome),
        "key": key_of(outcome.verdict),
        "number": with_minus(words.number(outcome)),
        "by_seed": with_minus(words.by_seed(outcome)),
        "by_means": with_minus(words.by_means(outcome)),
        "seeds": words.seeds(outcome),
        "setting": words.setting(outcome, about),
        "written": words.written(outcome),
    }


def key_of(verdict: str) -> str:
    """A verdict as a class of the style sheet."""
    return verdict.replace(" ", "-")


def summary(outcomes: Sequence[Outcome]) -> View:
    """The counts of the verdicts with their meanings, those on own questions apart."""
    claims, questions = words.claims(outcomes), words.own_questions(outcomes)
    judged = [outcome for outcome in claims if outcome.verdict != "not run"]
    return {
        "tests": words.tests(claims),
        "short": words.summary(judged),
        "verdicts": [
            {
                "key": key_of(count.verdict),
                "text": f"{count.number} {count.name}",
                "meaning": words.VERDICTS[count.verdict],
                "after": count.after,
            }
            for count in words.counts(claims)
        ],
        "own": len(questions),
        "own_text": words.summary(questions),
        "own_legend": words.OWN_LEGEND,
        "mark_legend": words.MARK_LEGEND,
    }
