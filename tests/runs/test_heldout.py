"""Held-out evaluations: seeds that nobody can choose, and forged files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from support import TINY

from iclbench import RecordError, RecordStore, UsageError, run
from iclbench.api.spec import digest_of
from iclbench.runs.heldout import (
    draw_salt,
    held_out_path,
    held_out_seed,
    read_held_out,
    write_held_out,
)
from iclbench.runs.heldout_evaluation import (
    _difference,
    _interval_of_share,
    _up_to_attainable,
    evaluate_held_out,
)
from iclbench.runs.store import read_record
from iclbench.runs.verify import verify

SALT = "00" * 32


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run(model="baseconv", **TINY, out=folder)
    run(model="zero", **TINY, out=folder)
    path = trained(folder)
    write_held_out(path, evaluate_held_out(path, read_record(path), SALT))
    return folder


@pytest.fixture
def results(source, tmp_path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "results"))


def trained(folder: Path) -> Path:
    return next(path for path in RecordStore(folder).paths() if "baseconv" in path.name)


def held_out_checks(path: Path):
    return [check for check in verify(path) if check.name.startswith("held out")]


def edit(path: Path, change) -> Path:
    """Edit the held-out file of a record and mend its digest."""
    target = held_out_path(path)
    content = json.loads(target.read_text("utf-8"))
    change(content)
    content["digest"] = digest_of({k: v for k, v in content.items() if k != "digest"})
    target.write_text(json.dumps(content), "utf-8")
    return path


def test_it_verifies_and_is_on_other_prompts_than_the_board_s(results):
    path = trained(results)
    record = read_record(path)
    held_out = read_held_out(path, record)
    assert held_out is not None
    assert held_out.draws != record.main.digest
    on_board = record.metrics["squared_error"]
    assert held_out.statistics.mean != on_board.mean
    # The difference is of what ranks.
    digits = held_out.statistics.digits.mean - on_board.digits.mean
    assert held_out.difference.mean == pytest.approx(digits)
    checks = held_out_checks(path)
    assert len(checks) > 10
    assert all(check.holds for check in checks)
    # It is not a record.
    assert held_out_path(path) not in list(RecordStore(results).paths())


def test_the_seed_depends_on_weights_record_and_salt(results):
    record = read_record(trained(results))
    assert record.weights_file is not None
    seed = held_out_seed(record, SALT)
    other_weights = record.weights_file.model_copy(update={"sha256": "1" * 64})
    others = {
        held_out_seed(record, "11" * 32),
        held_out_seed(record.model_copy(update={"weights_file": other_weights}), SALT),
        held_out_seed(record.model_copy(update={"id": "1" * 16}), SALT),
    }
    assert len(others) == 3
    assert seed not in others
    assert draw_salt() != draw_salt()


def better(content):
    content["statistics"]["digits"]["mean"] += 1.0


def no_difference(content):
    content["difference"] |= {"mean": 1.0, "low": 0.9, "high": 1.1, "p": 0.9}


def half_an_interval_better(content):
    known = content["difference"]
    half = (known["high"] - known["low"]) / 2
    known.update({name: known[name] + half for name in ("mean", "low", "high")})


def fewer_prompts(content):
    content["prompts"] = 8


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (better, "digits mean"),
        (no_difference, "difference mean"),
        (half_an_interval_better, "difference mean"),
        (fewer_prompts, "prompts"),
        (lambda content: content.update(draws="0" * 64), "draws"),
    ],
)
def test_forged_numbers_do_not_hold(results, change, fact):
    path = edit(trained(results), change)
    failing = [check.name for check in held_out_checks(path) if not check.holds]
    assert any(fact in name for name in failing), failing


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content.update(salt="11" * 32), "does not follow from"),
        (lambda content: content.update(seed=7), "does not follow from"),
        (lambda content: content.update(weights="1" * 64), "of other weights"),
        (lambda content: content.update(record="1" * 16), "of another record"),
        (lambda content: content.update(salt="no salt"), "salt"),
        (lambda content: content.update(extra=1), "extra"),
    ],
)
def test_contradictions_are_refused(results, change, reason):
    path = edit(trained(results), change)
    with pytest.raises(RecordError, match=reason):
        read_held_out(path, read_record(path))
    with pytest.raises(RecordError, match=reason):
        verify(path)


def test_an_edit_without_the_digest_and_damage_are_refused(results):
    path = trained(results)
    target = held_out_path(path)
    text = target.read_text("utf-8")
    target.write_text(text.replace('"prompts": 64', '"prompts": 65'), "utf-8")
    with pytest.raises(RecordError, match="digest does not match"):
        read_held_out(path, read_record(path))
    target.write_text(text[:-30], "utf-8")
    with pytest.raises(RecordError, match="not a held-out evaluation"):
        read_held_out(path, read_record(path))


def test_a_solver_has_none(results):
    path = next(p for p in RecordStore(results).paths() if "zero" in p.name)
    with pytest.raises(UsageError, match="no held-out evaluation"):
        evaluate_held_out(path, read_record(path), SALT)
    shutil.copy(held_out_path(trained(results)), held_out_path(path))
    with pytest.raises(RecordError, match="origin solver has none"):
        verify(path)


def test_a_row_that_a_grader_ranks_has_none(results):
    record = read_record(trained(results))
    ranking = record.ranking.model_copy(update={"metric": "grade_length"})
    with pytest.raises(UsageError, match="no held-out evaluation"):
        held_out_seed(record.model_copy(update={"ranking": ranking}), SALT)


@pytest.mark.parametrize(("p", "differs"), [(0.0004, True), (0.0009, False), (None, False)])
def test_a_row_differs_below_half_a_thousandth(results, p, differs):
    held_out = read_held_out(trained(results), read_record(trained(results)))
    difference = held_out.difference.model_copy(update={"p": p})
    assert held_out.model_copy(update={"difference": difference}).differs is differs


def test_welch_s_test_agrees_with_scipy():
    from scipy.stats import ttest_ind

    generator = np.random.default_rng(0)
    a, b = generator.normal(0.3, 1, 200), generator.normal(0, 2, 150)
    expected = ttest_ind(a, b, equal_var=False)
    bounds = expected.confidence_interval()
    ours = _difference(a, b, "higher")
    assert ours.p == pytest.approx(expected.pvalue)
    assert (ours.low, ours.high) == (pytest.approx(bounds.low), pytest.approx(bounds.high))


@pytest.mark.parametrize(
    ("now", "p"), [(np.ones(5), 1.0), (np.zeros(5), 0.0), (np.full(5, np.inf), None)]
)
def test_constant_and_infinite_values_have_a_p_value_or_none(now, p):
    with np.errstate(invalid="ignore"):
        assert _difference(now, np.ones(5), "lower").p == p


@pytest.mark.parametrize("size", [1e-300, 1e-90, 1e77, 1e300])
def test_the_difference_follows_the_size_of_values(size):
    generator = np.random.default_rng(0)
    now, before = generator.normal(1.2, 1, 200), generator.normal(1, 2, 150)
    plain, scaled = (
        _difference(now, before, "lower"),
        _difference(size * now, size * before, "lower"),
    )
    assert scaled.p == pytest.approx(plain.p)
    bounds = [scaled.low / size, scaled.mean / size, scaled.high / size]
    assert bounds == pytest.approx([plain.low, plain.mean, plain.high])


def test_rounding_at_the_floor_is_no_difference():
    """Correct rounding is less accurate on prompts of twice the size."""
    before, now = np.full((1, 64), 7.2), np.full((1, 64), 6.9)
    scored = _up_to_attainable([now, before], [np.full(64, 6.9), np.full(64, 7.2)])
    assert _difference(scored[0][0], scored[1][0], "higher").p == 1.0
    worse = _up_to_attainable([now - 2, before], [np.full(64, 6.9), np.full(64, 7.2)])
    assert _difference(worse[0][0], worse[1][0], "higher").mean == pytest.approx(-1.0)


def test_ranks_show_what_heavy_tails_hide_from_a_mean():
    generator = np.random.default_rng(0)
    count = {"mean": 0, "ranks": 0, "wrongly": 0}
    for _ in range(200):
        before, now = np.exp(3 * generator.standard_normal((2, 1024)))
        count["wrongly"] += _difference(now, before, "lower").rank_p < 0.05
        worse = _difference(2 * now, before, "lower")
        count["mean"] += worse.p < 0.001
        count["ranks"] += worse.rank_p < 0.001 and worse.better < 0.5
    assert count["mean"] < 20
    assert count["ranks"] > 180
    # At the level of 5%, 3 to 18 of 200 with a probability of 99%.
    assert 3 <= count["wrongly"] <= 18


def test_the_interval_of_the_share_covers_95_of_100():
    generator = np.random.default_rng(0)
    half = _interval_of_share(200) / 2
    shares = [_difference(*generator.standard_normal((2, 200)), "lower").better for _ in range(400)]
    assert 0.92 < np.mean(np.abs(np.array(shares) - 0.5) <= half) < 0.98


def test_ranks_of_equal_infinite_and_missing_values():
    equal = _difference(np.ones(8), np.ones(8), "lower")
    assert (equal.rank_p, equal.better) == (1.0, 0.5)
    for bad in (np.inf, np.nan):
        with np.errstate(invalid="ignore"):
            lost = _difference(np.full(200, bad), np.ones(200), "lower")
        assert (lost.p, lost.better) == (None, 0.0)
        assert lost.rank_p < 0.001
