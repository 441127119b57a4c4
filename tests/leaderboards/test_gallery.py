"""The gallery of studies: the order of a study's figures."""

from __future__ import annotations

from types import SimpleNamespace

from iclbench.leaderboards.site.gallery import _judged_first


def judgement(record, after_run):
    finding = SimpleNamespace(after_run=after_run, changed="")
    return SimpleNamespace(finding=finding, records=(SimpleNamespace(id=record),))


def test_figures_whose_records_were_judged_by_earlier_criteria_come_first():
    figures = [{"size": name, "values": {name: ""}} for name in ("quick", "paper", "hour")]
    judged = [judgement("quick", True), judgement("quick", True), judgement("hour", False)]
    ordered = _judged_first(figures, judged)
    assert [figure["size"] for figure in ordered] == ["hour", "quick", "paper"]


def test_figures_without_verdicts_keep_their_order():
    figures = [{"size": name, "values": {name: ""}} for name in ("quick", "hour")]
    assert _judged_first(figures, []) == figures
