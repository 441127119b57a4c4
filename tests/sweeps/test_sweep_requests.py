"""What functions of sweeps, campaigns, tunings and exports refuse, as the command line does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import iclbench
from iclbench import Executor, UsageError
from iclbench.sweeps.tuning.settings import SearchSettings

FILE = {"grid": [{"model": ["zero", "averaging"], "task": "least-squares", "eval_prompts": 16}]}


class Forgetful(Executor):
    """An executor whose `map` ends after the first job."""

    name = "forgetful"

    def map(self, function, jobs, workers) -> Iterator[tuple[int, object]]:
        yield 0, function(jobs[0])


def test_a_job_without_a_result_has_failed(tmp_path):
    result = iclbench.sweep(FILE, executor=Forgetful(), out=tmp_path)
    (failure,) = result.failures
    assert failure.reason.endswith("the executor gave no result for it")
    assert "averaging" in failure.command


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"force": True}, "unknown argument .force."),
        ({"devic": "cpu"}, "unknown argument 'devic'; did you mean 'device'"),
    ],
)
def test_an_argument_that_a_sweep_lacks_is_refused(tmp_path, given, message):
    with pytest.raises(UsageError, match=message):
        iclbench.sweep(FILE, out=tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("read", [iclbench.sweep, iclbench.campaign])
def test_a_file_that_is_not_there_is_bad_usage(tmp_path, read):
    with pytest.raises(UsageError, match=r"nofile\.toml"):
        read(tmp_path / "nofile.toml")


def test_negative_hours_are_no_limit(tmp_path):
    file = tmp_path / "campaign.toml"
    file.write_text('[[stage]]\nname = "a"\nsummary = "a"\nsuite = "smoke"\nmodels = ["lsa"]\n')
    with pytest.raises(UsageError, match="hours=-1: a number of at least 0 is needed"):
        iclbench.campaign(file, hours=-1, out=tmp_path / "out")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trials": "2"}, "trials='2' is no whole number of 1 or more"),
        ({"space": "learning_rate=1"}, "space='learning_rate=1' must map fields"),
    ],
)
def test_a_search_is_given_numbers_and_a_mapping(given, message):
    with pytest.raises(UsageError, match=message):
        SearchSettings(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dtype": "float16"}, "unknown dtype 'float16'"),
        ({"seed": -1}, "seed=-1 is no whole number of 0 or more"),
        ({"prompts": 10.0}, "prompts must be a number from 1 to"),
    ],
)
def test_an_export_is_refused_before_anything_is_written(tmp_path, given, message):
    arguments = {"task": "read", "prompts": 4, "out": tmp_path / "out", **given}
    with pytest.raises(UsageError, match=message):
        iclbench.export_task(**arguments)
    assert not (tmp_path / "out").exists()


def test_a_site_has_one_folder(cli, tmp_path):
    twice = ("--from", tmp_path / "a", "--from", tmp_path / "b")
    outcome = cli("leaderboard", "site", tmp_path / "site", *twice)
    assert (outcome.code, "a site has one folder of leaderboards" in outcome.err) == (2, True)
