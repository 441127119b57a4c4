"""Labels: rows of one model differ in their labels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

from iclbench import RecordStore, run, sweep
from iclbench.leaderboards.board import comparable
from iclbench.leaderboards.labels import labels_of
from iclbench.runs.store import read_record


def test_labels_tell_rows_of_one_model_apart(board):
    labels = {row.label for row in board.rows}
    assert {"zero", "least-squares-qr", "baseconv layers=1", "baseconv layers=2"} <= labels


def test_a_label_always_shows_a_fixed_pool(tmp_path):
    record = run(task="memorization", model="transformer", recipe="smoke", seeds=1,
                 eval_prompts=8, out=tmp_path)  # fmt: skip
    assert labels_of([record]) == ["transformer pool=320"]


def test_a_label_always_shows_what_training_started_from_and_seeds_that_were_chosen(tmp_path):
    spec = {"model": "baseconv", "task": "affine", "recipe": "smoke", "eval_prompts": 8,
            "out": tmp_path}  # fmt: skip
    started = run(**spec, seeds=2, init="affine")
    assert labels_of([started]) == ["baseconv init=affine"]
    # Whatever the file of a checkpoint is called, its digest tells it from a construction.
    named = {"init": "runs/none", "checkpoint_digest": "5c5ede57" * 8}
    of_file = started.model_copy(update={"spec": started.spec.model_copy(update=named)})
    assert labels_of([of_file]) == ["baseconv init=none@5c5ede57"]
    # A budget is no file, whatever the training started from.
    in_time = of_file.model_copy(update={"spec": of_file.spec.model_copy(update={"budget": "10m"})})
    labels = labels_of([of_file, in_time])
    assert labels[1] == "baseconv budget=10m init=none@5c5ede57"
    chosen = run(**spec, seeds=[3, 4, 5])
    assert labels_of([chosen]) == ["baseconv seeds=3-5"]
    assert labels_of([chosen, run(**spec, seeds=3)]) == ["baseconv seeds=3-5", "baseconv seeds=0-2"]


def test_a_label_names_only_what_differs(tmp_path):
    grid = {"model": "gradient-descent", "model_args": {"steps": [1, 4]}}
    defaults = {"task": "least-squares", "eval_prompts": 8}
    grids = [grid, {"model": "zero"}]
    records = sweep({"defaults": defaults, "grid": grids}, out=tmp_path).records
    assert labels_of(records) == ["gradient-descent steps=1", "gradient-descent steps=4", "zero"]
    assert labels_of(records[:1]) == ["gradient-descent"]


def test_parts_of_an_argument_show_only_where_nothing_else_differs(tmp_path):
    mixers = [["baseconv", "attention"], ["baseconv", "delta-net"]]
    spec = {"model": "hybrid", "task": "least-squares-prefixes", "recipe": "smoke", "seeds": 1,
            "eval_prompts": 8, "out": tmp_path}  # fmt: skip
    apart = [run(**spec, model_args={"mixers": names}) for names in mixers]
    assert [label.startswith("hybrid mixers=") for label in labels_of(apart)] == [True, True]
    assert not any("taps" in label or "heads" in label for label in labels_of(apart))
    taps = [{"mixers": mixers[0], "mixer_args": {"baseconv": {"taps": n}}} for n in (2, 3)]
    alike = [run(**spec, model_args=args) for args in taps]
    assert labels_of(alike) == ["hybrid taps=2", "hybrid taps=3"]


def test_seeds_that_differ_are_a_range(tmp_path):
    spec = {"model": "baseconv", "task": "least-squares", "recipe": "smoke", "eval_prompts": 8}
    records = [run(**spec, seeds=seeds, out=tmp_path) for seeds in (1, 3)]
    assert labels_of(records) == ["baseconv seeds=[0]", "baseconv seeds=0-2"]


def test_the_track_alone_tells_rows_of_two_budgets_apart(tmp_path):
    spec = {"model": "transformer", "task": "least-squares", "seeds": 1, "eval_prompts": 8}
    small = {"model_args": {"layers": 1, "width": 8}, "recipe_args": {"learning_rate": 1e-3}}
    one = run(**spec, **small, budget="1s", out=tmp_path)
    other = one.model_copy(update={"track": "10m", "spec": one.spec.model_copy(update={
        "budget": "10m", "model_args": {"layers": 4}, "seeds": (0, 1)})})  # fmt: skip
    third = other.model_copy(update={"spec": other.spec.model_copy(update={
        "model_args": {"layers": 2}})})  # fmt: skip
    assert labels_of([one, other]) == ["transformer track=1s", "transformer track=10m"]
    assert labels_of([one, other, third]) == [
        "transformer", "transformer layers=4", "transformer layers=2"
    ]  # fmt: skip


def test_weights_of_a_content_named_file_are_told_by_its_first_digits(tmp_path):
    grid = [
        {"name": name, "model": "transformer", "model_args": {"layers": 1, "width": width}}
        for name, width in (("a", 8), ("b", 16))
    ]
    loaded = [{"model": "transformer", "weights": f"@{name}", "task_args": {"noise": 0.5}}
              for name in ("a", "b")]  # fmt: skip
    defaults = {"task": "least-squares", "recipe": "smoke", "seeds": 1, "eval_prompts": 8}
    records = sweep({"defaults": defaults, "grid": [*grid, *loaded]}, out=tmp_path).records
    labels = labels_of(records[2:])
    assert [label.rpartition("weights=")[2] for label in labels] == [
        record.spec.checkpoint_digest[:8] for record in records[2:]
    ]


def test_a_label_repeats_no_argument_that_all_rows_of_the_model_share(tmp_path):
    args = {"task": "least-squares", "recipe": "smoke", "eval_prompts": 8, "out": tmp_path}
    record = run(model="baseconv", model_args={"mlp": False}, **args)
    # A tuning that was given an argument for all its trials tells the row from no other.
    tuning = SimpleNamespace(document={"base_model_args": {"mlp": False}})
    tuned = record.model_copy(update={"tuning": tuning, "track": "1m"})
    other = run(model="baseconv", **args)
    assert labels_of([tuned]) == ["baseconv"]
    assert labels_of([tuned, other]) == ["baseconv track=1m", "baseconv"]
    assert labels_of([record, other]) == ["baseconv mlp=false", "baseconv mlp=true"]


def test_no_two_rows_of_a_published_board_have_one_label():
    store = RecordStore(Path(__file__).parents[2] / "leaderboards" / "records")
    read = [read_record(path) for path in store.paths()]
    assert len(read) > 600
    for group in comparable(read):
        labels = labels_of(group)
        assert len(set(labels)) == len(labels)
        models = Counter((record.spec.model, record.track) for record in group)
        for record, label in zip(group, labels, strict=True):
            if models[record.spec.model, record.track] == 1 and record.spec.origin == "trained":
                named = {part.partition("=")[0] for part in label.split()[1:]}
                assert named <= {"track", "pool", "init", "seeds"}


def test_rows_that_nothing_else_tells_apart_are_told_by_their_ids(tmp_path):
    record = run(model="zero", task="least-squares", eval_prompts=8, out=tmp_path)
    other = record.model_copy(update={"id": "f" * 16})
    assert labels_of([record, other]) == [f"zero {record.id[:8]}", f"zero {'f' * 8}"]
