"""findings.md: counts, a line per finding, and the criteria with what limits a verdict."""

from __future__ import annotations

import re

import pytest
from jinja2 import Environment, PackageLoader
from test_verdict_words import finding

from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.findings import Judgement
from iclbench.leaderboards.findings_page import findings_page
from iclbench.leaderboards.site.finding_view import finding_view, in_order, summary

ABOUT = Descriptions(pytest.fail)


def test_the_page_says_which_criteria_were_written_after_the_run():
    before, after = (finding(after_run=value) for value in (False, True))
    page = findings_page([Judgement(before, "not run"), Judgement(after, "not run")], ABOUT)
    lines = [line for line in page.splitlines() if re.match(r"\d\. ", line)]
    assert [line.endswith(", after the run.") for line in lines] == [False, True]


def test_the_page_tells_what_limits_a_verdict_and_the_setting():
    plain, limited = finding(), finding(remark="The baseline is undertrained.")
    page = findings_page([Judgement(plain, "not run"), Judgement(limited, "not run")], ABOUT)
    lines = [line for line in page.splitlines() if re.match(r"\d\. ", line)]
    assert [line.endswith(" *The baseline is undertrained.*") for line in lines] == [False, True]
    assert "| setting" in page


def test_the_page_counts_own_questions_and_shorter_runs_apart():
    claim, own, shorter = (
        finding(**{"after_run": True, name: True})
        for name in ("after_run", "own_question", "shorter_run")
    )
    page = findings_page([Judgement(own, "reproduced", 3.0), Judgement(claim, "reproduced", 1.7e-5),
                          Judgement(shorter, "contradicted", -0.14)], ABOUT)  # fmt: skip
    assert "1 claim of papers, none of them tested by criteria written before the run.\n" in page
    assert re.search(r"^\| after the run +\| +1 \| +1 \|$", page, re.M)
    assert "1 test of the same claims with less training, by a criterion " in page
    assert "1 own question, by a criterion written after the run: 1 holds." in page
    claims, _, rest = page.partition("## The same claims with less training")
    assert "squared error 1.7e-5" in claims
    less, _, questions = rest.partition("## Own questions")
    assert "**contradicted\\***" in less
    assert "**holds\\***" in questions


def test_the_page_tells_flaws_and_changed_criteria():
    flawed = finding(flaw="The baseline is undertrained.", remark="One of many.")
    changed = finding(changed="Until 2026-11-26 the bound was 1, and the verdict *in kind*.")
    page = findings_page([Judgement(flawed, "not shown"), Judgement(changed, "reproduced")], ABOUT)
    assert "*One of many. Flaw: The baseline is undertrained.*" in page
    assert "**reproduced§**" in page
    assert "1 of them tested by a criterion written before the run: 1 not shown." in page
    assert re.search(r"^\| changed after the verdict +\| +1 \| +0 \| +1 \|$", page, re.M)


def test_the_site_counts_and_lists_shorter_runs_apart():
    claim, shorter = finding(), finding(shorter_run=True, after_run=True)
    judged = [Judgement(shorter, "contradicted", -0.14), Judgement(claim, "reproduced", 1.0),
              Judgement(claim, "not run")]  # fmt: skip
    assert in_order(judged) == [judged[1], judged[0], judged[2]]
    assert summary(judged)["claims"] == "2 claims of papers"
    sentence = "1 test of the same claims with less training, by a criterion written after the run"
    assert summary(judged)["shorter"] == f"{sentence}: 1 contradicted."
    assert summary(judged[1:])["shorter"] == ""
    templates = Environment(loader=PackageLoader("iclbench.leaderboards.site"))
    templates.filters["code"] = str
    chips = templates.get_template("study_parts.html").module.chips
    texts = [str(chips([finding_view(one, ABOUT)])) for one in judged]
    assert ["less training" in text for text in texts] == [True, False, False]
