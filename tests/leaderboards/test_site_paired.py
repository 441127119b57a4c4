"""The browser's paired differences are those of Python, number by number and word by word."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from browser import missing, open_browser

from iclbench.leaderboards import formats
from iclbench.leaderboards.paired import difference
from iclbench.leaderboards.site.build import make_site
from iclbench.leaderboards.site.compare import comparison_script
from iclbench.leaderboards.site.minus import with_minus

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=str(missing()))]

#: The differences of facts as `data/ID.js` holds them, and how they are written.
DIFFERENCES = """
const numbers = (t) => new Float32Array(Uint8Array.from(atob(t), (c) => c.charCodeAt(0)).buffer);
return arguments[0].map(([a, b, digits]) => {
  const facts = [a, b].map((one) => ({ ...one, prompts: numbers(one.prompts) }));
  const { mean, low, high } = window.paired.difference(...facts);
  const shown = window.paired.written({ mean, low, high }, digits, window.paired.mark(a, b));
  return [String(mean), String(low), String(high), shown];
});
"""


def rows():
    """Rows of 3 and 5 seeds, of one, of two kinds of seeds, heavy tails, and nearly equal ones."""
    draws = np.random.default_rng(1)
    base = draws.normal(3, 1, (1, 64))
    three = base + draws.normal(0, 0.3, (3, 64))
    yield from (three, three + 1e-9, base + draws.normal(0.2, 0.3, (5, 64)))
    yield base + np.array([[0.0], [0.01], [4.0]])  # one seed of three has learned
    yield draws.standard_t(2, (3, 64))
    yield base + np.array([[1.0], [-1.0]]) * draws.normal(0, 1, (1, 64))
    yield base + 0.5
    yield base
    of_seeds = np.exp(draws.normal(0, 1, (3, 1)))
    yield of_seeds * np.exp(draws.normal(0, 0.5, (3, 64)))
    yield np.exp(draws.normal(0, 1, (1, 64)))


def record_of(values: np.ndarray) -> SimpleNamespace:
    """A record of trained seeds; few values dominate the mean of one of two seeds."""
    measured = SimpleNamespace(low=0.0, high=1.0, interval="prompts", reliable=len(values) != 2)
    return SimpleNamespace(
        id="x",
        spec=SimpleNamespace(origin="trained"),
        seeds=range(len(values)),
        ranking=SimpleNamespace(metric="nll", has_digits=False),
        metrics={"nll": measured},
    )


def facts(values: np.ndarray, in_digits: bool) -> dict:
    """What the site holds of a row."""
    row = SimpleNamespace(ranked=values, record=record_of(values), has_digits=in_digits)
    return json.loads(comparison_script(row).partition(",")[2].removesuffix(");\n"))


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_differences_in_the_browser_are_those_of_python(site_with_pairs, scale):
    pairs = [(a, b) for a in rows() for b in rows()]
    in_digits = scale == "log"
    sent = [(facts(a, in_digits), facts(b, in_digits), in_digits) for a, b in pairs]
    with open_browser(1400, 900) as driver:
        driver.get((site_with_pairs / "compare/least-squares.html").as_uri())
        computed = driver.execute_script(DIFFERENCES, sent)
    kinds = set()
    for (a, b), (mean, low, high, shown) in zip(pairs, computed, strict=True):
        expected = difference(a, b, in_digits=in_digits)
        kinds.add(shown[-1:])
        assert [float(mean), float(low), float(high)] == pytest.approx(
            expected[:3], rel=1e-3, abs=1e-6, nan_ok=True
        )
        mark = formats.difference_mark([record_of(a), record_of(b)])
        if scale == "log":
            assert shown == with_minus(formats.difference(expected, scale, mark))
    assert kinds >= {"*", "†", "~", "]"}


@pytest.fixture(scope="module")
def site_with_pairs(leaderboards, tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "out"
    make_site(out, leaderboards)
    return out
