"""`iclbench.campaign`: what the command line does, from Python."""

from __future__ import annotations

import pytest

from iclbench import RecordStore, UsageError, campaign

TEXT = """
trials = 0
[[stage]]
name = "first"
summary = "small"
suite = "smoke"
boards = ["least-squares"]
models = ["zero", "{model}"]
fields = {{ recipe = "smoke", seeds = 1{more} }}
"""


def test_a_campaign_is_run_and_continued(tmp_path, capsys):
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    file.write_text(TEXT.format(model="lsa", more=""))
    assert campaign(file, out=out, device="cpu", progress=True) == []
    assert "first: lsa on least-squares: done" in capsys.readouterr().err
    records = [path.read_bytes() for path in RecordStore(out).paths()]
    assert len(records) == 2
    assert campaign(str(file), out=out, stage="first", device="cpu", progress=False) == []
    assert capsys.readouterr().err == ""
    assert [path.read_bytes() for path in RecordStore(out).paths()] == records


def test_failures_are_returned_and_mistakes_raised(tmp_path):
    file = tmp_path / "campaign.toml"
    file.write_text(TEXT.format(model="lsa", more=', eval_prompts = "many"'))
    with pytest.raises(UsageError):
        campaign(file, out=tmp_path / "out")
    file.write_text(TEXT.format(model="lsa", more=""))
    with pytest.raises(UsageError, match="unknown stage 'second'"):
        campaign(file, out=tmp_path / "out", stage="second")
