"""Records that name data of this machine are measured only for people whom one trusts."""

from __future__ import annotations

import pytest

from iclbench import RecordStore, run, verify
from iclbench.api.errors import RecordError

TALE = "A cat sat on a mat. It was fat. "


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The record of a run on the user's own texts."""
    folder = tmp_path_factory.mktemp("own")
    text = "<|endoftext|>".join(TALE * 8 + f"The end came {n} times. " for n in range(40))
    (folder / "own.txt").write_text(text)
    args = {"data": str(folder / "own.txt"), "vocabulary": 258}
    run("uniform", "stories", task_args=args, eval_prompts=4, out=folder / "results")
    (path,) = RecordStore(folder / "results").paths()
    return path


def test_it_is_refused_before_anything_is_read(path):
    data = path.parents[2] / "own.txt"
    data.rename(data.with_suffix(".away"))
    try:
        with pytest.raises(RecordError, match=r"data=.*own\.txt names data .* --read-data"):
            verify(path, "cpu")
    finally:
        data.with_suffix(".away").rename(data)


def test_it_holds_where_reading_is_allowed(path):
    assert all(check.holds for check in verify(path, "cpu", read_data=True))


def test_the_commands_ask_too(path, tmp_path, cli):
    for command in (["verify"], ["submit", "--to", tmp_path / "boards"]):
        words = [*command, str(path), "--device", "cpu"]
        refused = cli(*words)
        assert refused.code == 2
        assert "names data that no package ships; --read-data" in refused.err
        assert cli(*words, "--read-data").code == 0


def test_pulling_copies_it_unmeasured_only(path, tmp_path, cli):
    source = str(path.parents[1])
    refused = cli("pull", source, "--out", tmp_path / "pulled")
    assert refused.code != 0
    assert "--no-verify copies it" in refused.err
    assert not (tmp_path / "pulled").exists()
    assert cli("pull", source, "--no-verify", "--out", tmp_path / "pulled").code == 0
