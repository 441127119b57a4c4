"""Tuning: the space, its points, the search, and the runs that use what it chose."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace

import pytest

from iclbench import Recipe, RecordError, RecordStore, UsageError
from iclbench.api.errors import RunError
from iclbench.api.spec import RunSpec, digest_of
from iclbench.api.tuning import TuningDocument, tuning_evaluation_seed, tuning_seeds
from iclbench.runs import budget as budgets
from iclbench.runs.plan import resolve
from iclbench.runs.proofs import with_proof, write_proof
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.tuned import choose_tuning, read_tuning, read_tunings, tuned, write_tuning
from iclbench.runs.verify import verify
from iclbench.sweeps.campaign.files import Campaign
from iclbench.sweeps.campaign.progress import Progress
from iclbench.sweeps.tuning import search as search_module
from iclbench.sweeps.tuning.document import _cost
from iclbench.sweeps.tuning.planning import MOST_PROMPTS, _request, planned_search
from iclbench.sweeps.tuning.points import points_of
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings
from iclbench.sweeps.tuning.space import search_space
from iclbench.sweeps.tuning.trials import trial_budget
from iclbench.training.loop import Training

REQUEST = {
    "model": "baseconv",
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "recipe_args": {"steps": 40},
    "seeds": 2,
    "eval_prompts": 64,
}
SPACE = {"model_args": {"layers": [1, 2]}}
SEARCH = SearchSettings(trials=6, space=SPACE)


def plan_of(**changes):
    return resolve(RunSpec(**{**REQUEST, **changes}))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search's output folder and its document."""
    out = tmp_path_factory.mktemp("tuned")
    return out, tune(plan_of(), Settings(out), SEARCH)


def test_what_is_given_and_searched_is_refused_before_any_trial(tmp_path):
    with pytest.raises(UsageError, match=r"^layers can't be both given"):
        tune(plan_of(model_args={"layers": 1}), Settings(tmp_path), SEARCH)
    assert not (tmp_path / "tuning").exists()


def test_a_search_trains_at_a_tenth_on_prompts_and_seeds_of_its_own(searched):
    out, document = searched
    store = RecordStore(out / "tuning")
    records = {path.stem[-16:]: path for path in store.paths()}
    assert set(records) == {trial.run for trial in document.trials}
    assert document.seeds == tuning_seeds(1)
    assert len(document.trials) == 6
    for path in records.values():
        content = json.loads(path.read_text())
        assert content["training"]["steps"] == 4
        assert content["spec"]["seeds"] == list(tuning_seeds(1))
        assert content["spec"]["eval_seed"] == tuning_evaluation_seed(0) != 0
        # Rates and initial scales are replicas of one program.
        assert content["training"]["replicas"] >= 2


def test_the_best_trial_is_chosen_by_what_ranks(searched):
    _, document = searched
    scores = [trial.score for trial in document.trials]
    assert document.ranking.statistic == "mean digits"
    assert document.best.score == max(scores)
    assert document.cost.core_seconds > 0


def test_a_search_that_is_repeated_uses_its_trials_and_gives_the_same_file(searched, monkeypatch):
    out, document = searched
    path = write_tuning(out, document)
    assert path.name == f"{digest_of(json.loads(path.read_text()))[:16]}.json"
    monkeypatch.setattr("iclbench.runs.run.train_or_load", pytest.fail)
    lines = []
    again = tune(plan_of(), Settings(out), SEARCH, lines.append)
    assert lines == []  # a queue may need hours for a program that only finds its records
    assert again == document
    assert write_tuning(out, again) == path


def test_a_search_continues_with_the_trials_that_are_missing(searched, tmp_path):
    out, document = searched
    (tmp_path / "tuning").symlink_to(out / "tuning")
    lines = []
    more = tune(plan_of(), Settings(tmp_path), SearchSettings(trials=8, space=SPACE), lines.append)
    assert more.trials[:6] == document.trials
    assert len(more.trials) == 8
    assert lines[-1].endswith("done")


def test_a_trial_s_budget_is_a_tenth():
    assert trial_budget("10m") == "1m"
    assert trial_budget("gpu-1h") == "gpu-6m"
    assert trial_budget("4s") == "1s"


def test_a_trial_has_the_schedule_of_all_steps_and_few_prompts():
    plan = plan_of(eval_prompts=5000)
    (point,) = points_of(search_space(plan, {}), plan, 1, 0)
    request = _request(plan, point, 1)
    assert (request.recipe_args["steps"], request.recipe_args["schedule_steps"]) == (4, 40)
    assert request.eval_prompts == MOST_PROMPTS


def test_the_cost_of_a_search_is_that_of_all_seeds_of_its_trials():
    spent = SimpleNamespace(core_seconds=3.0, wall_seconds=2.0, device_seconds=1.0)
    cost = _cost([SimpleNamespace(budget=spent, seeds=[0, 1])] * 2)
    assert (cost.core_seconds, cost.wall_seconds, cost.device_seconds) == (12.0, 8.0, 4.0)


def test_a_search_by_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(budgets, "measure_rate", lambda trial, seconds: 30.0)
    plan = plan_of(recipe_args={}, budget="20s")
    document = tune(plan, Settings(tmp_path), SearchSettings(trials=2, space=SPACE))
    assert document.budget == "20s"
    assert [trial.steps for trial in document.trials] == [60, 60]


def test_a_trial_that_fails_is_kept_with_its_reason(tmp_path):
    space = {"model_args": {"heads": [1, 3]}, "schedules": ["cosine"]}
    plan = plan_of(model="transformer", model_args={"layers": 1, "width": 16})
    document = tune(plan, Settings(tmp_path), SearchSettings(trials=12, space=space))
    failed = [trial for trial in document.trials if trial.model_args["heads"] == 3]
    assert failed
    assert all("do not divide" in trial.failure and trial.score is None for trial in failed)
    assert document.best.model_args["heads"] == 1


def test_a_trial_that_diverges_is_not_chosen(tmp_path, monkeypatch):
    """Its last finite weights may be as good as any."""
    update = Training.update

    def diverging(self, batch, factor, step):
        if int(step) == 3:
            self.replicas.flat[0, 0] = float("nan")
        return update(self, batch, factor, step)

    monkeypatch.setattr(Training, "update", diverging)
    document = tune(plan_of(), Settings(tmp_path), SearchSettings(trials=6, space=SPACE))
    lost = [trial for trial in document.trials if trial.failure]
    assert [trial.failure for trial in lost] == ["diverged at step 2"] * len(lost)
    assert 0 < len(lost) < len(document.trials)
    assert all(trial.score is None and trial.run for trial in lost)
    assert document.best.failure is None


def test_a_setting_that_a_plugin_raises_for_is_a_trial_that_cannot_run(tmp_path, monkeypatch):
    plan = plan_of()
    supports = type(plan.architecture).supports

    def raising(self, signature, config):
        if config.layers == 2:
            raise ValueError("oops")
        return supports(self, signature, config)

    monkeypatch.setattr(type(plan.architecture), "supports", raising)
    planned = planned_search(plan, Settings(tmp_path), SearchSettings(trials=12, space=SPACE))
    failures = {trial.point.model_args["layers"]: trial.failure for trial in planned.trials}
    assert failures == {1: None, 2: "ValueError: oops"}


def test_a_search_without_any_score_fails_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(search_module, "run_job", broken_job)
    with pytest.raises(RunError, match=r"no trial of baseconv on least-squares .*: no luck"):
        tune(plan_of(), Settings(tmp_path), SEARCH)


def broken_job(job):
    return ["no luck"] * len(job["requests"])


# Using it


def test_a_tuned_run_has_the_chosen_arguments_and_holds_the_tuning(searched, tmp_path):
    _, document = searched
    plan = tuned(plan_of(), document)
    (record,) = run_plans([plan], Settings(tmp_path))
    assert record.spec.model_args["layers"] == document.best.model_args["layers"]
    rate = document.best.recipe_args["learning_rate"]
    assert record.spec.recipe_args["learning_rate"] == rate
    assert record.training.steps == 40
    assert TuningDocument.model_validate(record.tuning.document) == document
    path = RecordStore(tmp_path).path(record.spec)
    assert [c.difference for c in verify(path) if not c.holds] == []


def test_an_untuned_record_of_the_same_run_gets_the_tuning(searched, tmp_path, monkeypatch):
    _, document = searched
    plan = tuned(plan_of(), document)
    (before,) = run_plans([resolve(plan.request)], Settings(tmp_path))
    assert before.tuning is None
    monkeypatch.setattr("iclbench.runs.run.train_or_load", pytest.fail)
    (after,) = run_plans([plan], Settings(tmp_path))
    assert after.tuning == plan.tuning
    assert RecordStore(tmp_path).find(plan.spec) == after
    assert after.model_copy(update={"tuning": None}).sealed() == before


def test_a_record_that_gets_a_tuning_loses_the_proof_that_was_made_without_it(searched, tmp_path):
    plan = tuned(plan_of(), searched[1])
    (before,) = run_plans([resolve(plan.request)], Settings(tmp_path))
    write_proof(RecordStore(tmp_path).path(before.spec), with_proof(before, "cpu"), before)
    (after,) = run_plans([plan], Settings(tmp_path))
    assert (after.tuning, after.proof) == (plan.tuning, None)


def test_a_tuning_of_something_else_and_contradicting_arguments_are_refused(searched):
    _, document = searched
    with pytest.raises(UsageError, match="the tuning is of task_args"):
        tuned(plan_of(task_args={"dim": 2, "examples": 5}), document)
    with pytest.raises(UsageError, match=r"learning_rate=0\.5, but the tuning has"):
        tuned(plan_of(recipe_args={"steps": 40, "learning_rate": 0.5}), document)
    assert choose_tuning(plan_of(dtype="float64"), [document]) is None
    other = document.model_copy(update={"budget": "10m"})
    assert choose_tuning(plan_of(), [other, document]) is document
    # Of the run's budget, even if another has more trials.
    more = other.model_copy(update={"trials": document.trials * 2})
    assert choose_tuning(plan_of(), [document, more]) is document


def test_a_campaign_takes_only_a_tuning_of_its_budget_with_enough_trials(searched, tmp_path):
    _, document = searched
    stage = {"name": "a", "summary": "one", "suite": "core", "models": ["baseconv"]}

    def chosen(trials, **changes):
        campaign = Campaign.model_validate({"trials": trials, "stage": [stage]})
        progress = Progress(campaign, Settings(tmp_path), print)
        progress.tunings = [document.model_copy(update=changes)]
        return progress.tuning(plan_of())

    assert chosen(6) == document
    assert chosen(7) is None
    assert chosen(6, budget="9s") is None


def test_an_edited_or_a_renamed_tuning_is_refused(searched, tmp_path):
    _, document = searched
    path = write_tuning(tmp_path, document)
    assert read_tunings([path.parent]) == [document]
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "search_seed": 9}))
    with pytest.raises(RecordError, match="edited or renamed"):
        read_tuning(path)
    chosen = {**content, "chosen": (content["chosen"] + 1) % 6}
    renamed = path.with_name(f"{digest_of(chosen)[:16]}.json")
    renamed.write_text(json.dumps(chosen))
    with pytest.raises(RecordError, match="the chosen trial is not the best"):
        read_tuning(renamed)
    (tmp_path / "odd.json").write_text("[1")
    with pytest.raises(RecordError, match="not a tuning"):
        read_tuning(tmp_path / "odd.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no tunings in"):
        read_tunings([tmp_path / "empty"])


def test_recipes_are_searched_in_their_own_terms():
    """A recipe with another optimizer keeps it, with its arguments, beside Adam."""
    plan = plan_of(recipe_args={"steps": 10})
    adamw = Recipe(steps=10, batch=8, optimizer="adamw", schedule="step")
    space = search_space(type(plan)(**{**vars(plan), "recipe": adamw}), {})
    assert [choice.name for choice in space.optimizers][:2] == ["adamw", "adam"]
    assert space.schedules == ("step", "cosine", "constant")


def test_a_damaged_trial_is_named_and_ends_the_search(searched, tmp_path):
    """It would be a failure of the tuning for good, with this machine's path in it."""
    out, document = searched
    shutil.copytree(out / "tuning", tmp_path / "tuning")
    paths = RecordStore(tmp_path / "tuning").paths()
    path = next(path for path in paths if document.best.run in path.name)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(RecordError, match="truncated") as caught:
        tune(plan_of(), Settings(tmp_path), SEARCH)
    assert path.name in str(caught.value)
