"""`iclbench.tune` and `iclbench.run(tuned=…)`: what the command line does, from Python."""

from __future__ import annotations

import inspect

import pytest

from iclbench import RecordError, RecordStore, UsageError, run, tune
from iclbench.sweeps.tuning.settings import SearchSettings

WHAT = {
    "model": "transformer",
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "eval_prompts": 64,
}


def test_a_run_uses_the_tuning_and_a_second_search_trains_nothing(tmp_path, capsys):
    path = tune(**WHAT, trials=2, tuning_seeds=2, out=tmp_path, progress=True)
    assert path.parent == tmp_path / "tunings"
    assert "tuning transformer on least-squares: [1/1]" in capsys.readouterr().err
    assert tune(**WHAT, trials=2, tuning_seeds=2, out=tmp_path) == path
    assert capsys.readouterr().err == ""
    record = run(**WHAT, seeds=2, tuned=path, out=tmp_path)
    document = record.tuning.document
    assert record.tuning.sha256.startswith(path.stem)
    assert len(document["seeds"]) == 2
    for name, value in document["trials"][document["chosen"]]["recipe_args"].items():
        assert record.spec.recipe_args[name] == value
    for paths in (str(path), path.parent, tmp_path, [path, path.parent]):
        assert run(**WHAT, seeds=2, tuned=paths, out=tmp_path) == record


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task_args": {"dim": 3, "examples": 4}}, "is of dim=2, not 3"),
        ({"model": "baseconv"}, "no tuning is of baseconv on least-squares"),
        ({"model": "zero"}, "zero: nothing is trained, so that no tuning applies"),
        ({"tuned": "nosuch.json"}, "nosuch.json can't be read"),
    ],
)
def test_a_tuning_of_something_else_is_refused(tmp_path, changes, message):
    path = tune(**WHAT, trials=1, out=tmp_path)
    with pytest.raises((UsageError, RecordError), match=message):
        run(**{**WHAT, "tuned": path, **changes}, out=tmp_path)


def test_what_is_no_field_of_a_run_is_refused(tmp_path):
    with pytest.raises(UsageError, match="unknown argument 'trails'; did you mean 'trials'"):
        tune(**WHAT, trails=2, out=tmp_path)
    with pytest.raises(UsageError, match=r"^unknown argument 'fields'(?!.*'fields')"):
        tune(**WHAT, fields=2, out=tmp_path)
    with pytest.raises(UsageError, match="tune: dtype: "):
        tune(**WHAT, dtype="float8", out=tmp_path)
    for wrong in ({"trials": 1.5}, {"tuning_seeds": 0}, {"search_seed": -1}, {"workers": 0}):
        with pytest.raises(UsageError, match="is no whole number of"):
            tune(**WHAT, **wrong, out=tmp_path)
    with pytest.raises(UsageError, match="nothing is trained"):
        tune("zero", "least-squares", out=tmp_path)


def test_weights_of_several_seeds_start_no_trial(tmp_path):
    for seeds in (1, 2):
        record = run(**WHAT, seeds=seeds, out=tmp_path / "a")
        path = RecordStore(tmp_path / "a").path_of(record)
        if seeds == 1:
            assert tune(**WHAT, init=path, trials=1, out=tmp_path / "b").exists()
        else:
            with pytest.raises(UsageError, match="weights are of several seeds"):
                tune(**WHAT, seeds=2, init=path, trials=1, out=tmp_path / "b")


def test_a_folder_that_cannot_be_written_is_told_first(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="can't be written"):
        tune(**WHAT, trials=1, out=tmp_path / "file")


def test_the_defaults_are_those_of_a_search():
    parameters = inspect.signature(tune).parameters
    for name in ("trials", "search_seed", "workers"):
        assert parameters[name].default == getattr(SearchSettings(), name)
    assert parameters["tuning_seeds"].default == SearchSettings().tuning_seeds
