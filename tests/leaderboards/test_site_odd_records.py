"""Records that nobody would write, but that a folder may hold: pages and tables go on."""

from __future__ import annotations

import shutil

import pytest
from forging import reseal

from iclbench import RecordStore
from iclbench.display.costs import costs_table
from iclbench.leaderboards.build import build
from iclbench.leaderboards.costs import costs_of
from iclbench.leaderboards.site.build import make_site
from iclbench.runs.store import read_record

HUGE = 1e308


def curve_of(content):
    return content["validation_curve"]


def losses(*point):
    def change(content):
        training = content["training"]
        training["curve"] = [list(point)] * len(training["curve"])

    return change


def without_points(content):
    curve = curve_of(content)
    for name in ("steps", "seconds", "operations"):
        curve[name] = []
    for name in ("mean", "q05", "median", "q95"):
        curve[name] = [[] for _ in curve[name]]


def without_means(content):
    curve = curve_of(content)
    curve["mean"] = [[None] * len(row) for row in curve["mean"]]


def huge_operations(content):
    curve_of(content)["operations"] = [HUGE] * len(curve_of(content)["operations"])
    content["operations"]["training"] = HUGE


def late_steps(content):
    content["training"]["curve_steps"] = [2**62] * len(content["training"]["curve_steps"])


def shifted(size):
    def change(content):
        main = content["evaluations"]["main"]
        content["evaluations"]["scale"] = {**main, "answers": None, "target_size": size}

    return change


def without_digits(content):
    content["evaluations"]["main"]["metrics"]["squared_error"]["digits"] = None


def without_tuning(content):
    content["tuning"] = {"sha256": "0" * 64, "document": {}}


def analysis(plot):
    def change(content):
        content["analyses"] = {"any": [{"plots": [plot], "values": [1.0, 2.0]}] * 2}

    return change


CHANGES = {
    "a validation curve without points": without_points,
    "a validation curve without means": without_means,
    "losses that span all numbers": losses(HUGE, -HUGE),
    "losses of all magnitudes": losses(1e-320, 1e300),
    "losses that are one large number": losses(9.67e22, 9.67e22),
    "operations beyond counting": huge_operations,
    "steps beyond counting": late_steps,
    "a shift whose targets are tiny": shifted(1e-200),
    "digits that are missing": without_digits,
    "a tuning of nothing": without_tuning,
    "a plot whose lines are a number": analysis({"title": "t", "lines": 5}),
    "a plot of lines elsewhere": analysis({"title": "t", "lines": [{"path": "nowhere"}]}),
}


@pytest.mark.parametrize(
    "change",
    [lambda c: c["spec"].update(metrics=["../../outside"]), lambda c: c.update(track="<img>")],
)
def test_a_name_that_leads_out_of_the_site_or_breaks_a_page_is_refused(
    leaderboards, tmp_path, change
):
    folder = tmp_path / "leaderboards"
    shutil.copytree(leaderboards, folder)
    path = next(p for p in RecordStore(folder / "records").paths())
    reseal(path, change)
    refused = []
    make_site(tmp_path / "a" / "site", folder, refused.append)
    assert refused
    assert all("is not a plain name" in line for line in refused)
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"site"}


@pytest.mark.parametrize("name", CHANGES)
def test_one_odd_record_stops_no_page_and_no_table(leaderboards, tmp_path, name):
    folder = tmp_path / "leaderboards"
    shutil.copytree(leaderboards, folder)
    store = RecordStore(folder / "records")
    path = next(p for p in store.paths() if read_record(p).spec.origin == "trained")
    path = reseal(path, CHANGES[name])
    refused = []
    build(folder, refused=refused.append)
    assert make_site(tmp_path / "site", folder, refused.append) > 10
    costs_table(costs_of([read_record(path)]))
    assert refused == []
    home = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "least-squares-qr" in home
