"""The tuning in a record: what verifying it refuses."""

from __future__ import annotations

import shutil

import pytest
from forging import problem_of, reseal
from small_runs import TINY

from iclbench import RecordStore, UsageError
from iclbench.api.spec import RunSpec, digest_of
from iclbench.api.tuning import sealed_tuning, tuning_seeds
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record
from iclbench.runs.tuned import compare_tuning, trials_in_words, tuned
from iclbench.runs.verify import verify
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings


@pytest.fixture(scope="module")
def tuned_store(tmp_path_factory) -> RecordStore:
    out = tmp_path_factory.mktemp("tuned")
    plan = resolve(RunSpec(**TINY, model="baseconv"))
    document = tune(plan, Settings(out), SearchSettings(trials=2))
    run_plans([tuned(plan, document)], Settings(out))
    return RecordStore(out)


@pytest.fixture
def path(tuned_store, tmp_path):
    """A copy of the tuned record, with its files."""
    folder = shutil.copytree(tuned_store.folder, tmp_path / "store")
    (record,) = RecordStore(folder).paths()
    return record


def forged(change):
    """An edit of the tuning's document, with its digest mended."""

    def edit(content):
        change(content["tuning"]["document"])
        content["tuning"]["sha256"] = digest_of(content["tuning"]["document"])

    return edit


def swap(document):
    """The other trial claims the better score."""
    trials = document["trials"]
    trials[0]["score"], trials[1]["score"] = trials[1]["score"], trials[0]["score"]
    document["chosen"] = 1 - document["chosen"]


FORGERIES = {
    "another score": (
        lambda content: content["tuning"]["document"]["trials"][0].update(score=9.0),
        "tuning digest",
    ),
    "another choice": (forged(lambda d: d.update(chosen=1 - d["chosen"])), "tuning: recorded"),
    "other arguments chosen": (forged(swap), "tuned"),
    "other arguments given": (
        forged(lambda d: d.update(base_model_args={"convolution": "x"})),
        "tuned model_args convolution",
    ),
    "other settings given": (
        forged(lambda d: d.update(base_recipe_args={"batch": 999})),
        "tuned recipe_args batch",
    ),
    "another task": (forged(lambda d: d.update(task="ridge")), "tuning task"),
    "the board's seeds": (forged(lambda d: d.update(seeds=[0, 1])), "tuning seeds"),
    "the board's prompts": (forged(lambda d: d.update(evaluation_seed=0)), "evaluation seed"),
    "a negative cost": (
        forged(lambda d: d["cost"].update(core_seconds=-1e9)),
        "tuning: recorded",
    ),
    "a score of no run": (forged(lambda d: d["trials"][0].update(run=None)), "tuning: recorded"),
    "a day that is none": (forged(lambda d: d.update(created="tomorrow")), "tuning created"),
    "no document": (forged(lambda d: d.clear()), "tuning: recorded"),
    "a point outside": (
        forged(lambda d: d["trials"][0]["recipe_args"].update(learning_rate=9.0)),
        "tuning: recorded",
    ),
}


def test_a_tuned_record_holds(path):
    assert [check.difference for check in verify(path) if not check.holds] == []


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_tuning_is_noticed(path, case):
    change, problem = FORGERIES[case]
    found = problem_of(reseal(path, change), verify)
    assert found is not None
    assert problem in found


def test_a_run_on_the_seeds_of_its_tuning_is_noticed(path):
    record = read_record(path)
    spec = record.spec.model_copy(update={"seeds": tuning_seeds(2)})
    checks = compare_tuning(record.model_copy(update={"spec": spec}), plan_of(record))
    assert "seeds also used in tuning" in {check.name for check in checks if not check.holds}


def test_trials_without_a_score_are_counted():
    lost = {"score": None, "failure": "its predictions before training are not finite"}
    assert (
        trials_in_words({"trials": [lost, {"score": 1.0}, lost]}) == "3 trials, 2 without a score"
    )
    assert trials_in_words({"trials": [{"score": 1.0}]}) == "1 trial"
    assert trials_in_words({"trials": "many"}) == "0 trials"


TYPED = {
    "a default that a spec omits": ({"positions": "learned"}, {"accumulate": 1, "stages": []}),
    "integers as floats": ({"width": 16.0}, {"steps": 20.0, "batch": 16.0}),
    "a part of the optimizer's arguments": ({}, {"optimizer_args": {"betas": [0.9, 0.99]}}),
}


@pytest.mark.parametrize("case", TYPED)
def test_arguments_are_compared_in_their_normal_form(case, tmp_path):
    model_args, recipe_args = TYPED[case]
    request = RunSpec(
        **TINY,
        model="transformer",
        model_args={"layers": 1, "width": 16, **model_args},
        recipe_args={"steps": 20, **recipe_args},
    )
    plan = resolve(request)
    document = tune(plan, Settings(tmp_path), SearchSettings(trials=1))
    (record,) = run_plans([tuned(plan, document)], Settings(tmp_path))
    assert [
        c.difference for c in verify(RecordStore(tmp_path).path(record.spec)) if not c.holds
    ] == []
    # Older documents hold the arguments as the user typed them.
    update = {"base_model_args": request.model_args, "base_recipe_args": request.recipe_args}
    older = sealed_tuning(document.model_copy(update=update))
    checks = compare_tuning(record.model_copy(update={"tuning": older}), plan_of(record))
    assert [check.difference for check in checks if not check.holds] == []


def test_a_default_that_a_tuned_run_does_not_have_is_a_difference(tmp_path):
    request = RunSpec(**TINY, model="transformer", model_args={"layers": 1, "width": 16})
    plan = resolve(request)
    document = tune(plan, Settings(tmp_path), SearchSettings(trials=1))
    (record,) = run_plans([tuned(plan, document)], Settings(tmp_path))
    other = document.model_copy(update={"base_model_args": {"positions": "none"}})
    checks = compare_tuning(
        record.model_copy(update={"tuning": sealed_tuning(other)}), plan_of(record)
    )
    assert [check.name for check in checks if not check.holds] == ["tuned model_args positions"]
    with pytest.raises(UsageError, match="positions=learned, but the tuning has positions=none"):
        tuned(resolve(request.model_copy(update={"model_args": {"positions": "learned"}})), other)


def plan_of(record):
    return resolve(RunSpec.from_command(record.command))
