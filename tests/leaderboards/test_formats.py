"""Formats: differences and arguments as text."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from iclbench.leaderboards import formats, paired
from iclbench.leaderboards.arguments import argument_pairs, in_label
from iclbench.leaderboards.bounds import ONE_SEED, UNRELIABLE, Bounds
from iclbench.leaderboards.formats import (
    difference,
    difference_mark,
    digits,
    file_name,
    interval,
)


def test_a_difference_is_in_digits_gained_and_marked_if_significant():
    few, many = np.full((1, 50), 2.0), np.full((1, 50), 4.0)
    for first, second, shown in (
        (few, many, "-2.00 [-2.00, -2.00] *"),
        (few, few, "0.00"),
        (few + 1e-6, few, "0.00"),  # of no account
    ):
        assert difference(paired.difference(first, second, in_digits=True), "log") == shown
    unknown = paired.Difference(0.5, np.nan, np.nan, 1.0)
    assert difference(unknown, "log") == "+0.50, no interval"
    close = paired.Difference(-0.16, -0.32, -0.004, 0.04)
    assert difference(close, "log") == "-0.16 [-0.32, -0.004] *"
    assert difference(close._replace(high=0.001, p=0.06), "log") == "-0.16 [-0.32, +0.00]"
    linear = paired.difference(few / 4, few / 8, in_digits=True)
    assert difference(linear, "linear") == "+0.25 [+0.25, +0.25] *"


def test_a_small_number_is_no_negative_zero_and_no_zero_seconds():
    assert formats.digits(-0.001) == "0.00"
    assert formats.digits(-0.006) == "-0.01"
    assert [formats.seconds(value) for value in (0.00915, 0.5, 12.34)] == [
        "0.0092 s", "0.5 s", "12.3 s"]  # fmt: skip


def test_arguments_are_abbreviated():
    values = {"task_seed": 0, "sizes": [2, 3, 4, 9], "noise": None, "order": "any", "x": [0.5]}
    assert argument_pairs(values) == "sizes=2-4,9, order=any, x=[0.5]"


@pytest.mark.parametrize(
    ("path", "digest", "name"),
    [
        (f"objects/{'5c5ede57' * 8}.safetensors", "5c5ede57" * 8, "5c5ede57"),
        ("runs/a.pt", "5c5ede57" * 8, "a@5c5ede57"),
        ("none", "5c5ede57" * 8, "none@5c5ede57"),
        ("gd", "5c5ede57" * 8, "gd@5c5ede57"),
        ("gd", None, "gd"),
    ],
)
def test_a_checkpoint_is_called_by_its_name_and_digest(path, digest, name):
    assert file_name(path, digest) == name
    assert len(file_name("A" * 19_000, "5c5ede57" * 8)) < 60


def test_a_value_in_a_label_is_cut():
    assert in_label("x" * 500) == "x" * 79 + "…"
    assert in_label(["a", "b"]) == "a+b"
    assert in_label([0, 1, 2]) == "0-2"


@pytest.mark.parametrize(
    ("kind", "reliable", "seeds", "mark"),
    [
        ("seeds and prompts", True, 3, ""),
        ("range over seeds", False, 3, " ‡"),
        ("prompts", True, 1, " †"),
        ("prompts", False, 1, " †~"),
        # A solver has no seeds that could differ.
        ("prompts", True, 0, ""),
        ("prompts", False, 0, " ~"),
    ],
)
def test_an_interval_shows_of_which_kind_it_is(kind, reliable, seeds, mark):
    assert interval(Bounds(1.0, 2.0, kind, reliable), digits, seeds) == f"1.00 … 2.00{mark}"


def test_without_an_interval_nothing_is_shown():
    assert interval(Bounds(None, None, None, False)) == ""


def test_a_difference_of_what_is_not_finite_is_empty():
    infinite, finite = np.full((1, 4), np.inf), np.ones((1, 4))
    assert difference(paired.difference(infinite, finite, in_digits=True), "log") == ""


def test_labels_show_arguments_as_commands_write_them():
    values = (True, False, 0.25, "gd", ["a", "b"], [2, 3, 4, 9])
    assert [in_label(v) for v in values] == ["true", "false", "0.25", "gd", "a+b", "2-4,9"]


def test_exported_cells_have_no_marks_of_origins():
    """The site's CSV strips them from a cell's text; it has them in a column of their own."""
    script = Path(formats.__file__).with_name("site") / "assets" / "export.js"
    (stripped,) = re.findall(r"replace\(/\^\[(.*?)\]", script.read_text("utf-8"))
    assert set(stripped) == {*formats.MARKS.values(), formats.UNTUNED, formats.TUNED_AT_CHANCE}


def test_a_difference_of_0_keeps_an_interval_that_is_wide():
    wide = paired.Difference(0.001, -0.3, 0.302, 0.9)
    assert formats.difference(wide, "log") == "+0.00 [-0.30, +0.30]"


def test_missing_digits_that_round_to_0_have_no_sign():
    for missing, text in ((0.004, "0.00"), (0.5, "-0.50"), (None, "")):
        row = SimpleNamespace(at_floor=False, missing_digits=missing)
        assert formats.missing_digits(row) == text


def test_numbers_of_a_column_have_the_same_number_of_digits():
    assert (formats.linear(0.5), formats.linear(1234.0)) == ("0.5000", "1234")


def record(seeds=3, *, origin="trained", reliable=True, in_digits=False):
    """What a mark needs to know of a record; `reliable` is told as each kind of mean tells it."""
    interval = "seeds and prompts" if reliable else "range over seeds"
    means = {"low": 0.0, "high": 1.0, "interval": interval}
    return SimpleNamespace(
        spec=SimpleNamespace(origin=origin),
        seeds=range(seeds),
        ranking=SimpleNamespace(metric="m", has_digits=in_digits),
        metrics={"m": SimpleNamespace(**means, reliable=reliable, digits=SimpleNamespace(**means))},
    )


@pytest.mark.parametrize("in_digits", [True, False])
def test_a_difference_says_why_it_makes_no_record_better(in_digits):
    sure, solver = record(in_digits=in_digits), record(1, origin="solver", in_digits=in_digits)
    doubtful = record(in_digits=in_digits, reliable=False)
    one_seed = record(1, in_digits=in_digits)
    assert difference_mark([sure, sure]) == difference_mark([sure, solver]) == ""
    assert difference_mark([sure, doubtful]) == difference_mark([doubtful, solver]) == UNRELIABLE
    assert difference_mark([doubtful, one_seed]) == difference_mark([one_seed]) == ONE_SEED
