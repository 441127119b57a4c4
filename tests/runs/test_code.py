"""The code that made a record: what counts, and what is stale or missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import TINY

import iclbench
from iclbench import PluginError, run
from iclbench.plugins import host
from iclbench.runs.code import (
    HARNESS,
    NOT_COUNTED,
    counted_files,
    other_code,
    require_plugins,
    stale_code,
)
from iclbench.runs.proofs import with_proof

PACKAGE = Path(iclbench.__file__).parent


def test_code_that_can_change_a_number_counts():
    names = {file.relative_to(PACKAGE).as_posix() for file in counted_files()}
    assert {"api/task.py", "nn/block.py", "training/loop.py", "runs/evaluate.py"} <= names
    assert not any(name.startswith(("cli/", "leaderboards/", "sweeps/")) for name in names)
    assert all((PACKAGE / name).is_file() for name in NOT_COUNTED)


@pytest.fixture
def record(tmp_path):
    return run(model="zero", **TINY, out=tmp_path)


def test_a_record_of_other_code_is_stale(record):
    assert stale_code(record) == []
    assert record.plugins[0].name == HARNESS
    for index, changes in ((0, {"source": "0" * 64}), (1, {"version": "9"})):
        plugins = list(record.plugins)
        plugins[index] = plugins[index].model_copy(update=changes)
        other = record.model_copy(update={"plugins": plugins})
        assert stale_code(other) == [plugins[index].name]


def test_a_proof_by_the_installed_code_renews_a_record(record):
    old = record.plugins[0].model_copy(update={"source": "0" * 64})
    made_by_other = record.model_copy(update={"plugins": [old, *record.plugins[1:]]})
    checked = with_proof(made_by_other)
    assert other_code(checked) == [HARNESS]
    assert stale_code(checked) == []
    # A proof that leaves out a plugin, or that other code gave, proves nothing about this one.
    for plugins in (checked.proof.plugins[1:], [old, *checked.proof.plugins[1:]], []):
        proof = checked.proof.model_copy(update={"plugins": plugins})
        assert stale_code(checked.model_copy(update={"proof": proof})) == [HARNESS]


def test_a_missing_plugin_is_named_with_the_record(record, monkeypatch):
    def needs(**changes):
        plugin = record.plugins[1].model_copy(update={"name": "ssm", **changes})
        with pytest.raises(PluginError) as caught:
            require_plugins(Path("x.json"), record.model_copy(update={"plugins": [plugin]}))
        return str(caught.value)

    expected = "x.json: needs iclbench-ssm 0.1.0, which is not installed"
    assert needs(distribution="iclbench-ssm") == expected
    assert "needs iclbench 0.1.0, whose plugin ssm is not loaded" in needs()
    assert needs(distribution="this-process", version="0").endswith("; register it here")
    from dataclasses import replace

    broken = replace(host().plugins[0], name="ssm", problem="no torch")
    monkeypatch.setattr(host(), "plugins", [*host().plugins, broken])
    assert "which is left out: no torch" in needs()
