"""A campaign's file, and the executor that runs its cells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_queue import FakeQueue, FakeQueueConfig
from test_campaign import SUITE, campaign, first

from iclbench import RecordStore, UsageError
from iclbench.api.config import parse_config
from iclbench.runs.settings import Settings
from iclbench.sweeps.campaign.cells import cells_of
from iclbench.sweeps.campaign.files import Campaign, read_campaign
from iclbench.sweeps.campaign.run import executor_of, run_campaign
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
    for refused in (
        lambda: run_campaign(content, settings, executor="fake-queue"),
        lambda: executor_of(settings, "fake-queue", {}, 1),  # as --dry-run does
    ):
        with pytest.raises(UsageError, match="has a queue, which campaigns don't support"):
            refused()
    assert not (tmp_path / "out" / "jobs").exists()
    args = {"partition": "big"}
    assert run_campaign(content, settings, executor="noting", executor_args=args) == []
    partition, jobs, outs = seen[0]
    assert partition == "big"
    assert jobs.is_relative_to(tmp_path / "out")
    assert all(Path(out).is_absolute() for out in outs)


@pytest.mark.parametrize("workers", [0, -1])
def test_fewer_than_one_worker_would_run_nothing(tmp_path, workers):
    with pytest.raises(UsageError, match="there must be at least 1"):
        executor_of(Settings(out=tmp_path), "local", {}, workers)


def test_a_campaign_is_a_regular_file_that_is_not_nested_too_deeply(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(UsageError, match="not a regular file"):
        read_campaign(tmp_path / "pipe.toml")
    (tmp_path / "deep.toml").write_text("x = " + "[" * 100_000)
    with pytest.raises(UsageError, match="nested too deeply"):
        read_campaign(tmp_path / "deep.toml")


def test_a_suite_s_file_lies_beside_the_campaign_s(tmp_path):
    path = tmp_path / "campaign.toml"
    path.write_text(
        '[[stage]]\nname = "a"\nsummary = "s"\nmodels = ["zero"]\nsuite = "mine.toml"\n'
        '[[stage]]\nname = "b"\nsummary = "s"\nmodels = ["zero"]\nsuite = "core"\n'
    )
    assert [stage.suite for stage in read_campaign(path).stage] == [
        str(tmp_path / "mine.toml"),
        "core",
    ]


def test_a_run_of_a_sweep_that_can_t_be_planned_is_a_failure_at_every_start(tmp_path):
    (tmp_path / "sweep.toml").write_text(
        '[[grid]]\nmodel = ["zero", "nosuch"]\ntask = "ridge"\neval_prompts = 32\n'
    )
    (tmp_path / "campaign.toml").write_text(
        '[[stage]]\nname = "a"\nsummary = "s"\n[[stage.sweep]]\nfile = "sweep.toml"\nout = "s"\n'
    )
    content = read_campaign(tmp_path / "campaign.toml")
    settings = Settings(tmp_path / "out")
    for _ in range(2):
        (failure,) = run_campaign(content, settings)
        assert "unknown model 'nosuch'" in failure
    (cell,) = cells_of(content, settings)
    assert (cell.state, cell.work) == ("failed", None)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"space": {"lssa": {}}}, "space has 'lssa', a model of no stage"),
        (
            {"stage": [first(suite="smoke", model_args={"lssa": {}})]},
            "model_args has 'lssa', which it lacks",
        ),
        (
            {"stage": [first(suite="smoke", fields={"model_args": {"layers": 1}})]},
            "give model_args.NAME",
        ),
        ({"stage": [first(suite="smoke", models=[[]])]}, "an empty list of models"),
    ],
)
def test_names_that_nothing_uses_are_refused(content, reason):
    with pytest.raises(ValueError, match=reason):
        Campaign.model_validate({"stage": [first(suite="smoke")], **content})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"stage": 5}, r"stage: a list is needed: each stage is a table \[\[stage\]\]"),
        ({"stage": [5]}, r"stage\.0: a table is needed"),
        ({"stage": [first(suite="smoke", boards=5)]}, "a name or a list of names is needed"),
        ({"stage": [first(suite="smoke", models=[5])]}, "a list of names is needed, or of lists"),
        ({"stage": [first(suite="smoke", model_args={"lsa": 5})]}, "lsa: a table is needed"),
        ({"stage": [first(sweep=5)]}, r"each sweep is a table \[\[stage\.sweep\]\]"),
        ({"space": [1]}, "space: a table is needed"),
    ],
)
def test_mistakes_are_told_in_the_words_of_toml(content, reason):
    with pytest.raises(UsageError, match=reason):
        parse_config(Campaign, {"stage": [first(suite="smoke")], **content}, "c.toml")


def test_seeds_are_written_as_in_a_sweep():
    content = {"stage": [first(suite="smoke", fields={"seeds": "3,7"})]}
    assert Campaign.model_validate(content).stage[0].fields == {"seeds": (3, 7)}
    content = {"stage": [first(suite="smoke", fields={"seeds": "0-1"})]}
    with pytest.raises(ValueError, match="seeds: '0-1' is neither a number nor a list like 3,7"):
        Campaign.model_validate(content)


def test_published_boards_must_be_a_folder(tmp_path):
    (tmp_path / "tiny.toml").write_text(SUITE)
    file = tmp_path / "campaign.toml"
    stage = 'name = "a"\nsummary = "b"\nsuite = "tiny.toml"\nmodels = ["lsa"]\n'
    file.write_text(f'published = "gone"\n[[stage]]\n{stage}')
    with pytest.raises(UsageError, match="gone is no folder"):
        read_campaign(file)


def test_a_winner_that_cannot_be_planned_is_named(tmp_path):
    (tmp_path / "tiny.toml").write_text(SUITE)
    wrong = first(name="b", models=[], winner_of="a", fields={"recipe_args": {"learning_rat": 1}})
    content = campaign(tmp_path, first(), wrong, trials=1)
    (failure,) = run_campaign(content, Settings(tmp_path / "out", device="cpu"))
    assert failure.startswith("b: lsa on plain: ")
    assert "learning_rat" in failure


def test_stages_may_give_a_model_different_arguments(tmp_path):
    (tmp_path / "tiny.toml").write_text(SUITE)
    stages = [first(name=n, model_args={"lsa": {"layers": k}}) for n, k in (("a", 0), ("b", 1))]
    content, settings = campaign(tmp_path, *stages, trials=1), Settings(tmp_path / "out")
    # The space of these campaigns searches the layers: the trials would be for nothing.
    refused = "lsa on plain: layers can't be both given and searched"
    assert run_campaign(content, settings) == [f"a: {refused}", f"b: {refused}"]
    assert not (settings.out / "tuning").exists()
    content = content.model_copy(update={"space": {"lsa": {"optimizers": ["adam"]}}})
    assert run_campaign(content, settings) == []
    done = [cell for cell in cells_of(content, settings) if cell.model == "lsa"]
    assert [(cell.state, cell.plan.config.layers) for cell in done] == [("done", 0), ("done", 1)]


def test_a_record_that_was_cut_off_is_not_done(tmp_path):
    (tmp_path / "tiny.toml").write_text(SUITE)
    content, settings = campaign(tmp_path, first(models=["zero"])), Settings(tmp_path / "out")
    assert run_campaign(content, settings) == []
    (cell,) = cells_of(content, settings)
    path = RecordStore(settings.out).path(cell.plan.spec)
    path.write_text(path.read_text()[:100])
    (failure,) = run_campaign(content, settings)
    assert path.name in failure


def test_a_mistake_in_the_only_stage_is_the_only_complaint(tmp_path):
    file = tmp_path / "campaign.toml"
    file.write_text('[[stage]]\nsummary = "no name"\nsuite = "smoke"\n')
    with pytest.raises(UsageError) as refused:
        read_campaign(file)
    assert "stage.0.name is missing" in str(refused.value)
    assert "at least" not in str(refused.value)
    file.write_text("trials = 2\nstage = []\n")
    with pytest.raises(UsageError, match=r"a campaign needs at least one \[\[stage\]\]"):
        read_campaign(file)
