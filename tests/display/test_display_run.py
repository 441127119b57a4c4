"""`iclbench.run` and what a Python session does with records."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

import iclbench
from iclbench import RecordError, RunSpec, UsageError, compare, leaderboard, run
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record

SMALL = {"task_args": {"dim": 2, "examples": 4}, "recipe": "smoke", "seeds": 2, "eval_prompts": 64}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("records")


@pytest.fixture(scope="module")
def trained(folder):
    return run("transformer", "least-squares", **SMALL, out=folder)


@pytest.fixture(scope="module")
def solved(folder):
    return run("least-squares-qr", "least-squares", **SMALL, out=folder)


def test_the_signature_names_every_field_with_its_default():
    parameters = inspect.signature(run).parameters
    for name, field in RunSpec.model_fields.items():
        assert name in parameters, f"add {name} to iclbench/display/run.py"
        default = parameters[name].default
        if field.is_required():
            assert default is inspect.Parameter.empty
        elif name == "seeds":
            assert tuple(range(default)) == field.default
        elif isinstance(field.default, dict):
            assert default is None
        else:
            assert default == field.default
    known = {*RunSpec.model_fields, *Settings.__dataclass_fields__, "progress", "tuned"}
    assert set(parameters) == known
    defaults = Settings()
    for name in Settings.__dataclass_fields__:
        assert str(parameters[name].default) == str(getattr(defaults, name))
    assert all(p.annotation is not inspect.Parameter.empty for p in parameters.values())


def test_a_path_may_be_given_for_weights(folder, trained):
    path = folder / trained.weights_file.name
    again = run("transformer", "least-squares", **SMALL, weights=path, out=folder)
    assert again.spec.origin == "loaded"
    assert again.metrics["squared_error"].mean == trained.metrics["squared_error"].mean


def test_an_unknown_argument_and_a_bad_value_are_refused(folder):
    with pytest.raises(TypeError, match="modle_args"):
        run("zero", "least-squares", modle_args={}, out=folder)
    with pytest.raises(UsageError, match="eval_prompts"):
        run("zero", "least-squares", eval_prompts=1, out=folder)


def test_a_record_knows_its_folder_and_one_in_memory_does_not(folder, trained):
    assert trained.folder == folder
    assert trained.path == folder / "least-squares" / f"transformer-{trained.id}.json"
    assert read_record(trained.path).folder == folder
    loose = iclbench.Record.model_validate_json(trained.model_dump_json())
    assert loose == trained
    with pytest.raises(RecordError, match="the record has no folder"):
        loose.frame()


def test_a_frame_has_every_value_with_its_floor(trained):
    table = trained.frame()
    assert list(table.columns) == ["seed", "prompt", "squared_error", "floor"]
    assert len(table) == 2 * 64
    by_seed = table.groupby("seed")["squared_error"].mean()
    for index, seed in enumerate(trained.seeds):
        expected = trained.main.seeds[index]["squared_error"].mean
        assert by_seed[seed.seed] == pytest.approx(expected)
    assert table["floor"].mean() / 2 < table["squared_error"].mean()
    first = table[table["seed"] == 0].set_index("prompt")["floor"]
    second = table[table["seed"] == 1].set_index("prompt")["floor"]
    assert np.array_equal(first, second)
    with pytest.raises(UsageError, match="did you mean 'squared_error'"):
        trained.frame("squared_eror")
    with pytest.raises(UsageError, match="unknown evaluation"):
        trained.frame(evaluation="mian")


def test_a_frame_of_a_curve_has_its_axis(folder):
    record = run("gradient-descent", "least-squares-prefixes", **SMALL, out=folder)
    table = record.frame("prefix_error")
    assert list(table.columns) == ["seed", "prompt", "prefix", "prefix_error", "floor"]
    means = table.groupby("prefix")["prefix_error"].mean()
    curve = record.curves["prefix_error"]
    assert list(means.index) == curve.values
    assert list(means) == pytest.approx(curve.mean)
    assert table["seed"].isna().all()


def test_weights_are_state_dicts_by_seed(trained, solved):
    states = trained.weights()
    assert list(states) == [0, 1]
    assert sum(tensor.numel() for tensor in states[0].values()) == trained.parameters
    with pytest.raises(RecordError, match="has no weights"):
        solved.weights()


def test_the_module_of_a_record_gives_its_errors_again(trained, solved, tmp_path):
    task = iclbench.load_task("least-squares", **SMALL["task_args"])
    (batch,) = task.evaluation_batches(64, 0, torch.float32)
    for record, seeds in ((trained, [0, 1]), (solved, [None])):
        errors = record.frame("squared_error")
        for seed in seeds:
            module = iclbench.load_model(record, seed)
            assert not module.training
            with torch.no_grad():
                values = task.metrics(module(batch.prompt), batch)["squared_error"]
            own = errors if seed is None else errors[errors["seed"] == seed]
            # Errors below the rounding of the target are recorded as that.
            np.testing.assert_allclose(values, own["squared_error"], rtol=1e-4, atol=1e-13)
    assert iclbench.load_model(trained.path).state_dict().keys() == trained.weights()[0].keys()
    with pytest.raises(UsageError, match="no model has the seed 7; known: 0"):
        iclbench.load_model(trained, 7)


def test_the_module_of_a_record_is_that_of_the_first_seed_that_was_given(tmp_path):
    record = run("lsa", "least-squares", **{**SMALL, "seeds": (3, 1)}, out=tmp_path)
    states = iclbench.load_model(record).state_dict()
    assert all(torch.equal(states[name], tensor) for name, tensor in record.weights()[3].items())


def test_one_name_is_as_good_as_a_list_of_it(tmp_path):
    record = run("zero", "least-squares", **SMALL, shift="all", out=tmp_path)
    assert len(record.evaluations) > 1


def test_a_changed_file_is_refused(folder, tmp_path):
    record = run("zero", "least-squares", **SMALL, out=tmp_path)
    path = tmp_path / record.main.values["squared_error"].name
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(RecordError, match="was changed"):
        record.frame()


def test_compare_pairs_the_prompts(trained, solved):
    table = compare(trained, solved.path)
    line = table.loc["squared_error"]
    assert (line["statistic"], line["better"]) == ("mean digits", "b")
    assert line["difference"] == pytest.approx(line["a"] - line["b"])
    assert line["low"] < line["difference"] < line["high"] < 0
    assert compare(solved, trained).loc["squared_error", "better"] == "a"
    same = compare(solved, solved).loc["squared_error"]
    assert (same["difference"], same["better"]) == (0.0, "")


def test_compare_refuses_other_prompts(folder, solved):
    other = run("zero", "least-squares", **{**SMALL, "eval_prompts": 32}, out=folder)
    with pytest.raises(
        UsageError, match=r"numbers of prompts \(--eval-prompts\) differ, 64 and 32"
    ):
        compare(solved, other)


def test_boards_are_data_frames(folder, trained, solved):
    run("zero", "least-squares", **{**SMALL, "eval_prompts": 32}, out=folder)
    boards = leaderboard(folder)
    board = next(b for b in boards if trained.id in {r.id for r in b.records})
    table = board.frame()
    assert list(table["id"]) == [record.id for record in board.records]
    assert set(table["id"]) < set(boards.frame()["id"])
    assert len(boards.frame()) == sum(len(b.rows) for b in boards)
    (folder / "empty").mkdir()
    assert leaderboard(folder / "empty").frame().empty
    with pytest.raises(UsageError, match="there is no folder"):
        leaderboard(folder / "nothing")


def test_a_notebook_shows_records_and_boards(folder, trained):
    page = trained._repr_html_()
    assert "transformer on least-squares v2" in page
    assert "<th>squared_error</th>" in page
    boards = leaderboard(folder)
    html = boards._repr_html_()
    assert html.count("<table") == len(boards)
    assert "<td>transformer</td>" in html


def test_a_module_in_place_of_a_name_is_answered_with_the_page_on_it():
    with pytest.raises(
        UsageError, match=r"model is of type Linear, not the name .*guide/weights\.md"
    ):
        run(torch.nn.Linear(2, 1), "least-squares")


def test_a_record_can_be_given_in_place_of_its_path(trained, tmp_path):
    assert all(check.holds for check in iclbench.verify(trained))
    boards = tmp_path / "boards"
    assert iclbench.submit(trained, boards).records == iclbench.submit([trained], boards).records
    again = run("transformer", "least-squares", **SMALL, weights=trained, out=tmp_path / "b")
    assert again.metrics == trained.metrics
