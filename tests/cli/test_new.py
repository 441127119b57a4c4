"""`iclbench new`: what it writes where, and what to do next."""

from __future__ import annotations


def test_it_writes_a_folder_and_says_what_is_next(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = cli("new", "metric", "bias")
    assert (outcome.code, outcome.err) == (0, "")
    files, _, following = outcome.out.partition("\n\nNext:\n")
    assert following.split("\n")[0].strip() == "cd iclbench-bias"
    assert sorted(files.splitlines()) == sorted(
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    )


def test_a_chosen_folder(cli, tmp_path):
    assert cli("new", "task", "mean", "--out", tmp_path / "here").code == 0
    assert (tmp_path / "here" / "pyproject.toml").is_file()


def test_a_bad_kind_writes_nothing(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = cli("new", "optimizer", "bias")
    assert (outcome.code, list(tmp_path.iterdir())) == (2, [])
