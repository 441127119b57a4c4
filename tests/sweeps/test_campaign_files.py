"""A campaign's file, and the executor that runs its cells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_queue import FakeQueue, FakeQueueConfig
from test_campaign import SUITE, campaign, first

from iclbench import UsageError
from iclbench.runs.settings import Settings
from iclbench.sweeps.campaign.files import read_campaign
from iclbench.sweeps.campaign.run import run_campaign
from iclbench.sweeps.executors.local import Local


def test_an_executor_gets_its_arguments_and_one_with_a_queue_is_refused(tmp_path, provide):
    (tmp_path / "tiny.toml").write_text(SUITE)
    seen = []

    class Noting(Local):
        name = "noting"
        Config = FakeQueueConfig

        def map(self, function, jobs, workers):
            seen.append((self.config.partition, self.folder, [job["out"] for job in jobs]))
            return super().map(function, jobs, workers)

    provide("executor", "noting", Noting)
    provide("executor", "fake-queue", FakeQueue)
    content, settings = campaign(tmp_path, first(models=["zero"])), Settings(tmp_path / "out")
    with pytest.raises(UsageError, match="has a queue, which campaigns don't support"):
        run_campaign(content, settings, executor="fake-queue")
    assert not (tmp_path / "out" / "jobs").exists()
    args = {"partition": "big"}
    assert run_campaign(content, settings, executor="noting", executor_args=args) == []
    partition, jobs, outs = seen[0]
    assert partition == "big"
    assert jobs.is_relative_to(tmp_path / "out")
    assert all(Path(out).is_absolute() for out in outs)


def test_a_campaign_is_a_regular_file_that_is_not_nested_too_deeply(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(UsageError, match="not a regular file"):
        read_campaign(tmp_path / "pipe.toml")
    (tmp_path / "deep.toml").write_text("x = " + "[" * 100_000)
    with pytest.raises(UsageError, match="nested too deeply"):
        read_campaign(tmp_path / "deep.toml")
