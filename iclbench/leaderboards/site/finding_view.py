"""How the site shows a finding: its badges, its number, and its setting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...console import counted
from .. import verdict_words as words
from ..descriptions import Descriptions
from ..findings import Judgement
from .figure import View
from .minus import with_minus


def finding_view(judgement: Judgement, about: Descriptions) -> View:
    """A finding with its verdict, as badges, cards and tables show it."""
    return {
        "finding": judgement.finding,
        "verdict": words.marked(judgement),
        "key": key_of(judgement.verdict),
        "is_late": words.when(judgement.finding) != "before the run",
        "number": with_minus(words.number(judgement)),
        "by_seed": with_minus(words.by_seed(judgement)),
        "by_means": with_minus(words.by_means(judgement)),
        "lowered": words.lowered(judgement),
        "seeds": words.seeds(judgement),
        "setting": words.setting(judgement, about),
        "written": words.written(judgement),
        "remarks": words.remarks(judgement.finding),
    }


def in_order(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The judgements as pages list them: claims with the longest training, then the others.

    Those that still wait for their run come last.
    """
    return sorted(judgements, key=lambda one: (one.verdict == "not run", one.finding.shorter_run))


def key_of(verdict: str) -> str:
    """A verdict as a class of the style sheet."""
    return verdict.replace(" ", "-")


def summary(judgements: Sequence[Judgement]) -> View:
    """The counts of the verdicts with their meanings, those on own questions apart.

    A claim counts once, by the run with the most training.
    """
    claims, questions = words.claims(judgements), words.own_questions(judgements)
    verdicts, lines = words.crossed(claims)
    return {
        "claims": f"{counted(len(claims), 'claim')} of papers",
        "short": words.foretold(claims),
        "verdicts": [(key_of(verdict), verdict, words.VERDICTS[verdict]) for verdict in verdicts],
        "lines": lines,
        "shorter": words.shorter_runs_sentence(judgements),
        "own": len(questions),
        "own_text": words.summary(questions),
        "own_legend": words.OWN_LEGEND,
        "mark_legend": words.MARK_LEGEND,
    }
