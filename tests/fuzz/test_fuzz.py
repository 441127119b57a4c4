"""Fuzzing in bounded time, and whether it would notice what it looks for."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import invocation
import pytest
from cases import CASES, arena, guarded, make_records
from fuzz import fuzz
from invocation import invoke


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    return make_records(tmp_path_factory.mktemp("sound"))


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_no_case_ends_in_a_traceback_or_a_hang_or_writes_elsewhere(kind, count, sound, tmp_path):
    counts, failures = fuzz(kind, range(count), tmp_path, sound)
    print(f"{kind}: {dict(counts)}")
    assert failures == []
    assert sum(n for name, n in counts.items() if name.startswith("exit")) == count
    # Cases that are all refused at once, or that all pass, would show nothing.
    assert counts["exit 2"] > count // 3
    assert counts["exit 0"] > 0


def test_a_case_is_determined_by_its_seed(sound, tmp_path):
    first, again = (CASES["commands"](3, tmp_path / name, sound) for name in ("a", "b"))
    assert (first.words, first.code) == (again.words, again.code)


def breaking(monkeypatch, function) -> None:
    """Replace the whole command line."""
    monkeypatch.setattr("iclbench.cli.main", function)


def test_a_traceback_is_noticed(monkeypatch):
    def fail() -> None:
        raise KeyError("nobody thought of this")

    breaking(monkeypatch, fail)
    assert "nobody thought of this" in invoke([], 5).problem()


def test_a_hang_is_noticed(monkeypatch):
    def hang() -> None:
        with contextlib.suppress(Exception):
            time.sleep(60)

    breaking(monkeypatch, hang)
    assert "more than 1 s" in invoke([], 1).problem()


def test_an_exit_without_a_reason_is_noticed(monkeypatch):
    def leave() -> None:
        raise SystemExit(2)

    breaking(monkeypatch, leave)
    assert "without a reason" in invoke([], 5).problem()


@pytest.mark.parametrize("name", ["../escape", "../secret", "records/least-squares/new"])
def test_a_file_outside_the_output_is_noticed(monkeypatch, sound, tmp_path, name):
    breaking(monkeypatch, lambda: Path(name).write_text("other"))
    with arena(tmp_path, sound) as work:
        assert "outside its output" in guarded([], tmp_path, work / "out").problem()


@pytest.mark.parametrize(
    "line",
    [
        "iclbench: error: a.json: KeyError: 'x'",
        "iclbench: error: E: e (ICLBENCH_DEBUG=1 shows the traceback)",
    ],
)
def test_an_unplanned_error_is_counted(line):
    assert invocation.Outcome([], 2, "", line, 0.0).unplanned
    assert not invocation.Outcome([], 2, "", "iclbench: error: a.json is a link", 0.0).unplanned
