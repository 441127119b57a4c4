"""The simulation of coverage: its truths are true, and its tables come from its file."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from benchmarks import coverage, coverage_boards, coverage_scenarios, coverage_suites
from benchmarks.coverage import cover, simulate_boards, simulate_suites
from benchmarks.coverage_boards import board_scenarios
from benchmarks.coverage_scenarios import scenarios
from benchmarks.coverage_suites import suite_scenarios
from iclbench.api.random import philox

BY_NAME = {scenario.name: scenario for scenario in scenarios()}
BOARDS = {scenario.name: scenario for scenario in board_scenarios()}


@pytest.mark.parametrize(
    "name", [n for n in BY_NAME if not any(s in n for s in ("σ", "errors", "the others"))]
)
def test_the_truth_is_the_mean_of_many_values(name):
    values, truth = BY_NAME[name].draw(philox("truth"), 10, 100)
    by_case = values.mean(axis=(0, 1))
    assert by_case.mean() == pytest.approx(truth.mean(), abs=5 * by_case.std() / 10)


@pytest.mark.parametrize("name", ["digits, normal", "fraction 0.989"])
def test_the_truth_of_one_seed_is_its_own_mean(name):
    values, truth = BY_NAME[name].draw(philox("one"), 1, 100)
    by_case = values.mean(axis=(0, 1))
    # The prompts' means remain; without the seed's effect the correlation would be 0.
    assert np.corrcoef(by_case, truth)[0, 1] > 0.2


def test_intervals_of_normal_digits_cover():
    row = cover(BY_NAME["digits, normal"], 5, 100)
    assert row["intervals"] == 1
    assert row["intervals cover"] > 0.85
    assert row["others cover"] is None


def test_a_true_difference_is_seen_and_copies_are_not_told_apart():
    row = simulate_boards(BOARDS["half of the rows 3 digits better"], 5, 3)
    assert row["true differences seen"] > 0.9
    assert simulate_boards(BOARDS["identical rows"], 3, 2)["no false difference"] == 1


def test_a_false_difference_is_counted(monkeypatch):
    monkeypatch.setattr("iclbench.leaderboards.ranking.SIGNIFICANCE", 1e9)
    assert simulate_boards(BOARDS["copies: digits, normal"], 3, 2)["no false difference"] < 1


def test_the_tables_are_written_and_shown_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(coverage, "QUICK", 5)
    monkeypatch.setattr(coverage_scenarios, "PROMPTS", 16)
    monkeypatch.setattr(coverage_boards, "PROMPTS", 8)
    monkeypatch.setattr(coverage_suites, "PROMPTS", 8)
    file = tmp_path / "coverage.json"
    monkeypatch.setattr(sys, "argv", ["coverage", "--quick", "--json", str(file)])
    coverage.main()
    printed = capsys.readouterr().out
    content = json.loads(file.read_text())
    assert {"intervals", "boards", "suites"} == set(content)
    # What the file has stays, and what it lacks is simulated again.
    content["intervals"][0]["intervals cover"] = 0.123
    del content["boards"][0]
    file.write_text(json.dumps(content))
    monkeypatch.setattr(sys, "argv", ["coverage", "--quick", "--add", "--json", str(file)])
    coverage.main()
    printed_again = capsys.readouterr().out
    assert "12.3%" in printed_again
    assert printed_again.partition("Boards")[2] == printed.partition("Boards")[2]
    printed = printed_again
    monkeypatch.setattr(sys, "argv", ["coverage", "--show", str(file)])
    coverage.main()
    assert capsys.readouterr().out == printed
    assert "| fraction 0.5" in printed
    # An interruption loses no row, neither of the file nor of those that were simulated.
    content = json.loads(file.read_text())
    lacking = {**content, "intervals": content["intervals"][1:], "boards": content["boards"][1:]}
    file.write_text(json.dumps(lacking))
    monkeypatch.setattr(sys, "argv", ["coverage", "--quick", "--add", "--json", str(file)])
    monkeypatch.setattr(coverage, "simulate_boards", lambda *row: sys.exit("interrupted"))
    with pytest.raises(SystemExit):
        coverage.main()
    left = json.loads(file.read_text())
    assert [len(left[kind]) - len(lacking[kind]) for kind in content] == [1, 0, 0]


def test_equal_models_of_a_suite_are_seldom_ordered_and_intervals_that_are_too_short_are_seen(
    monkeypatch,
):
    scenario = next(s for s in suite_scenarios() if s.name.startswith("3 boards, seeds differ"))
    assert simulate_suites(scenario, 3, 10)["no false difference"] > 0.7
    monkeypatch.setattr("iclbench.leaderboards.suite_means.SIGNIFICANCE", 1.9)
    assert simulate_suites(scenario, 3, 3)["no false difference"] == 0
