"""Parsing of arguments and seeds."""

from __future__ import annotations

import pytest

from iclbench import RunSpec, UsageError
from iclbench.api.options import parse_arguments, parse_seeds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1,b=2.5", {"a": 1, "b": 2.5}),
        ("lr=1e-3", {"lr": 1e-3}),
        ("on=true,off=null", {"on": True, "off": None}),
        ("name=hello", {"name": "hello"}),
        ("path=x=y", {"path": "x=y"}),
        ("betas=[0.9,0.99],k=1", {"betas": [0.9, 0.99], "k": 1}),
        ('d={"a":{"b":1}},k=1', {"d": {"a": {"b": 1}}, "k": 1}),
        ('s="a,b",k=1', {"s": "a,b", "k": 1}),
        ("sizes=2-9", {"sizes": "2-9"}),
        ("", {}),
    ],
)
def test_arguments(text, expected):
    assert parse_arguments([text], "--x") == expected


def test_options_repeat_and_files_are_read(tmp_path):
    # A byte order mark, which some editors write, is no part of the content.
    (tmp_path / "a.toml").write_text("layers = 3\nnested = { a = 1 }", "utf-8-sig")
    (tmp_path / "b.json").write_text('{"width": 8}')
    arguments = parse_arguments([f"@{tmp_path}/a.toml", f"@{tmp_path}/b.json", "layers=4"], "--x")
    assert arguments == {"layers": 4, "nested": {"a": 1}, "width": 8}


@pytest.mark.parametrize(
    "text",
    ["nonsense", "=1", "a=1,b", "@missing.toml", "a=[1,b=2", "a=1],b=2", 'a="x,b=2', "a={1,b=2"],
)
def test_malformed_arguments_are_refused(text):
    with pytest.raises(UsageError, match="--model-args"):
        parse_arguments([text], "--model-args")


def test_an_argument_has_one_value():
    assert parse_arguments(["a=1", "b=2,a=1"], "--x") == {"a": 1, "b": 2}
    for texts in (["a=1,a=2"], ["a=1", "b=2", "a=2"]):
        with pytest.raises(UsageError, match="--x: a is given twice, as 1 and 2"):
            parse_arguments(texts, "--x")
    # NaN differs from itself, and true equals 1.
    assert list(parse_arguments(["a=NaN", "a=NaN"], "--x")) == ["a"]
    with pytest.raises(UsageError, match="twice, as True and 1"):
        parse_arguments(["a=true,a=1"], "--x")


def test_file_must_contain_a_table(tmp_path):
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(UsageError, match="table"):
        parse_arguments([f"@{tmp_path}/a.json"], "--x")


def test_seeds():
    assert RunSpec(model="m", task="t", seeds=parse_seeds("3")).seeds == (0, 1, 2)
    assert RunSpec(model="m", task="t", seeds=parse_seeds("3,7")).seeds == (3, 7)
    assert RunSpec(model="m", task="t", seeds=parse_seeds("[7]")).seeds == (7,)
    with pytest.raises(UsageError, match="neither a number nor a list"):
        parse_seeds("many")
