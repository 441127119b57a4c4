"""What is a repository of the hub, and what a path."""

from __future__ import annotations

import pytest

from iclbench import UsageError
from iclbench.exchange.hub import repository

# The hub's client uses a parameter that its HTTP library is about to rename.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ann/tiny", (None, "ann/tiny")),
        ("datasets/ann/tiny", ("dataset", "ann/tiny")),
        ("hub:ann/tiny", (None, "ann/tiny")),
        ("hub:datasets/ann/tiny", ("dataset", "ann/tiny")),
        ("./ann", None),
        ("../ann", None),
        ("./ann/tiny", None),
        ("/ann/tiny", None),
        ("~/ann", None),
        ("C:/copy", None),
        ("c:\\copy\\of", None),
        ("ann", None),
        ("a/b/c", None),
        ("ann/..", None),
    ],
)
def test_an_address_is_told_from_a_path(text, expected):
    assert repository(text) == expected


@pytest.mark.parametrize("text", ["ann/tiny?x", "ann/größe", "my results/tiny"])
def test_a_mistyped_address_is_not_taken_for_a_folder(text):
    with pytest.raises(UsageError, match=r"is not a repository name; for a folder, write \./"):
        repository(text)


@pytest.mark.parametrize("name", ["ann/tiny", "datasets/ann/tiny"])
def test_a_folder_is_not_taken_for_a_repository_of_its_name(
    cli, hub, trained, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir(parents=True)
    for words in (("pull", name), ("push", trained, "--to", name, "--yes")):
        refused = cli(*words)
        assert refused.code == 2
        assert f"write ./{name} for the folder, or hub:{name} for the rep" in refused.err
    assert hub.requests == []
    assert cli("push", trained, "--to", "hub:ann/tiny", "--yes").code == 0
    assert cli("pull", "hub:ann/tiny", "--out", "back").code == 0
