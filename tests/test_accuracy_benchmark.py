"""The benchmark of time to accuracy, at toy size and with toy clones of the papers' code."""

from __future__ import annotations

import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks import accuracy, field
from benchmarks import watch as watching
from benchmarks.accuracy import chosen, read_rows, seconds_to, table, trainings
from benchmarks.accuracy_trainings import Arguments, garg, merged, ours, precision_ls
from benchmarks.field import pairs, steps_per_second
from benchmarks.watch import Watch
from iclbench import run

POINTS = [(0, 1.0, 2.0), (10, 5.0, 0.09), (20, 6.0, 0.2), (30, 9.0, 0.01)]

#: A training as the papers' are: it moves batches to a GPU and looks at a progress bar.
TRAIN = """
import wandb
from tqdm import tqdm

def train(model, args):
    assert args.test_run and args.training.optimizer_args == {"a": 1}
    for step in tqdm(range(args.training.train_steps)):
        model.seen.append(next(model.parameters()).cuda())
        assert args.training.curriculum.points.end == (21 if args.model.n_layer == 3 else 20)
"""
MODELS = """
import torch

class Answer(torch.nn.Module):
    def __init__(self, conf):
        super().__init__()
        self.conf, self.seen, self.w = conf, [], torch.nn.Parameter(torch.zeros(1))

    def forward(self, x, y=None):
        assert not self.training
        if y is None:  # the weights, at every token
            design, outputs = x[:, :, :5], x[:, :, 5:]
            weights = torch.linalg.lstsq(design, outputs).solution
            return weights.mT.expand(-1, x.shape[1], -1)
        weights = torch.linalg.lstsq(x[:, :-1], y[:, :-1, None]).solution
        return (x @ weights)[:, :, 0]

def build_model(conf):
    return Answer(conf)
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone whose model solves least squares; its modules are forgotten afterwards."""
    files = {
        "train.py": TRAIN,
        "models.py": MODELS,
        "conf/base.yaml": "training: {train_steps: 3, optimizer_args: {a: 1}}\n"
        "model: {n_dims: 20, n_layer: 12}\n",
        "conf/linear_regression.yaml": "inherit: [base.yaml]\n"
        "training: {curriculum: {points: {start: 11, end: 41}, dims: {start: 5, end: 20}}}\n",
        "conf/models/tiny.yaml": "model: {n_layer: 3}\n",
        "conf/least_squares/least_squares.yaml": "inherit: [../base.yaml]\n"
        "training: {curriculum: {points: {start: 20, end: 20}}}\n",
        "conf/least_squares/least_squares_icl.yaml": "inherit: [../base.yaml]\n"
        "training: {curriculum: {points: {start: 6, end: 20}}}\n",
    }
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(watching, "PROMPTS", 16)
    yield str(tmp_path)
    for name in ("train", "models"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("train", [garg, precision_ls])
def test_a_clones_training_runs_unchanged_and_is_evaluated(clone, train):
    more = {"size": "tiny"} if train is garg else {"mixer": "attn", "layers": 2}
    path = list(sys.path)
    watch = train(100.0, clone=clone, **more)
    assert watch.steps == 3
    assert watch.points[-1][0] == 3
    assert watch.points[-1][2] < 1e-9  # so the prompts are those of the task
    # A batch may be moved to a GPU only within the training.
    assert sys.path == path
    assert "wandb" not in sys.modules or sys.modules["wandb"].__spec__ is not None
    model = watch.predict.__closure__
    (conf,) = (c.cell_contents.conf for c in model if hasattr(c.cell_contents, "conf"))
    assert conf == ({"n_dims": 5, "n_layer": 3, "n_positions": 21} if train is garg
                    else {"n_dims": 20, "n_layer": 2, "seq_op": "attn"})  # fmt: skip


def test_a_training_ends_at_its_limit(clone):
    watch = garg(0.0, clone=clone, size="tiny")
    assert (watch.steps, len(watch.points)) == (0, 1)


def test_quick_takes_its_steps_and_the_time_of_evaluations_is_not_counted(monkeypatch):
    monkeypatch.setattr(watching, "PROMPTS", 16)
    recipe = {"recipe_args": {"steps": 4, "batch": 4, "chunk": 2}, "model_args": {"layers": 1}}
    watch = ours(100.0, **recipe)
    assert watch.steps == watch.points[-1][0] == 4
    steps, seconds, errors = zip(*watch.points, strict=True)
    assert list(steps) == sorted(steps)
    assert list(seconds) == sorted(seconds)
    assert all(map(math.isfinite, errors))


@pytest.mark.slow  # its optimizer's package takes long to import
def test_a_published_tuning_is_trained_until_the_limit(monkeypatch):
    monkeypatch.setattr(watching, "PROMPTS", 16)
    tuned = [train for name, train in trainings(None, None).items() if "tuned" in name]
    assert tuned
    watch = tuned[0](0.0)
    assert watch.steps == 0


def test_a_watch_counts_time_between_evaluations_only(monkeypatch):
    clock = iter([0.0, 2.0, 100.0, 101.0, 110.0])
    monkeypatch.setattr(watching.time, "process_time", lambda: next(clock))
    watch = Watch(10.0, lambda batch: torch.zeros(len(batch.target), 1, 1))
    assert watch.after(1)  # at 2 s; the evaluation ends at 100
    assert watch.after(2)  # at 3 s
    assert [round(seconds, 6) for _, seconds, _ in watch.points] == [2.0, 3.0]
    # Answering 0 has the squared value of a sum of five products of normal numbers.
    assert 0.5 < watch.points[0][2] < 5


def test_a_prediction_that_is_not_finite_is_the_worst():
    watch = Watch(10.0, lambda batch: torch.full((len(batch.target), 1, 1), math.nan))
    assert watch.error() == math.inf


def test_the_first_evaluation_below_a_level_counts():
    assert seconds_to(1e-1, POINTS) == 5.0
    assert seconds_to(1e-2, POINTS) == 9.0
    assert seconds_to(1e-3, POINTS) is None


def test_a_file_of_rows_is_printed(tmp_path, monkeypatch, capsys):
    row = {"training": "a model", "limit": 10.0, "points": POINTS, "date": "d", "commit": "c"}
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([row]))
    assert read_rows(tmp_path / "none.json") == {}
    assert table(list(read_rows(path).values())) == table([row])
    monkeypatch.setattr(sys, "argv", ["accuracy", "--report", str(path)])
    accuracy.main()
    out = capsys.readouterr().out
    assert all(text in out for text in ("a model", "5", "9 of 10", "–", "1.0e-02", "d, c"))


def test_unknown_names_and_clones_are_refused(monkeypatch, tmp_path, capsys):
    with pytest.raises(SystemExit, match=r"no training is named so; there are .*quick"):
        chosen(trainings(None, None), ["nothing"])
    assert len(chosen(trainings("clone", "clone"), [])) > len(trainings(None, None))
    monkeypatch.setattr(sys, "argv", ["accuracy", "--garg", str(tmp_path)])
    with pytest.raises(SystemExit):
        accuracy.main()
    assert "is no clone" in capsys.readouterr().err


def test_tables_of_arguments_are_merged_and_read_by_attribute():
    both = merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}})
    assert both == {"a": {"b": 1, "c": 4}, "d": 3}
    assert Arguments(both).a.c == 4
    with pytest.raises(AttributeError, match="e"):
        _ = Arguments(both).e


def test_speed_alone_is_measured_without_evaluations(clone):
    """The pairs of `benchmarks.field`: a paper's training and ours of the same model."""
    named = pairs(clone, clone)
    assert len(named) == 6
    theirs, engine = named["precision-ls, transformer, 2 layers"]
    watch = theirs(100.0)
    assert watch.steps == 3
    assert all(math.isnan(error) for *_, error in watch.points)
    assert engine.keywords["model_args"] == {"layers": 2, "width": 64}
    assert engine(0.0).steps == 0


def test_the_first_quarter_of_the_time_warms_up():
    points = [(0, 0.0, 0.0), (2, 10.0, 0.0), (6, 20.0, 0.0), (16, 40.0, 0.0)]
    speed = steps_per_second(lambda limit: SimpleNamespace(points=points), 40.0)
    assert speed == (16 - 2) / (40 - 10)


def test_ratios_are_medians_over_rounds():
    row = {"training": "a", "theirs": [1.0, 2.0, 4.0], "engine": [3.0, 4.0, 20.0],
           "date": "d", "commit": "c"}  # fmt: skip
    assert "3.00 (2.00–5.00)" in field.table([row])


def test_a_papers_lowest_error_is_looked_up_in_our_training():
    def row(name, *points):
        return {"training": name, "points": [(i, *point) for i, point in enumerate(points)]}

    rows = [row("Garg et al., tiny (3 × 64)", (10.0, 2.0), (90.0, 0.5), (100.0, 0.7)),
            row("iclbench, transformer, tuned for 10m", (1.0, 3.0), (5.0, 0.4)),
            row("iclbench, transformer, quick", (1.0, 0.9))]  # fmt: skip
    quick, longer, tuned = accuracy.against_papers(rows).splitlines()[2:]
    assert [cell.strip() for cell in tuned.strip("|").split("|")][1:] == [
        "5.0e-01", "100", "transformer, tuned for 10m", "5", "20"]  # fmt: skip
    assert quick.count("–") >= 2
    assert longer.count("–") >= 2


@pytest.mark.parametrize("model", ["hgrn2", "baseconv"])
def test_models_of_every_kind_are_watched(model):
    args = {"steps": 2, "batch": 4}
    watch = ours(60.0, model=model, recipe_args=args, model_args={"layers": 2, "width": 4})
    assert watch.points[-1][0] == 2


def test_published_rows_are_read_from_their_curves(monkeypatch, tmp_path):
    args = {"dim": 5, "examples": 20}
    request = {"model": "baseconv", "task": "least-squares", "task_args": args, "budget": "1s",
               "seeds": 3, "model_args": {"layers": 1, "width": 4}, "eval_prompts": 8,
               "out": tmp_path}  # fmt: skip
    record = run(**request)
    curve = record.validation_curve
    solver = {"model": "least-squares-qr", "task": "least-squares", "task_args": args}
    run(**solver, eval_prompts=8, out=tmp_path)
    monkeypatch.setattr(accuracy, "RECORDS", tmp_path)
    medians = np.median([[float(digits) for digits in seed] for seed in curve.median], axis=0)
    errors = 10 ** (-2 * medians)
    monkeypatch.setattr(accuracy, "LEVELS", (float(errors[0]), float(errors.min()) / 2))
    (row,) = accuracy.published().splitlines()[2:]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "baseconv", "1s", f"{curve.seconds[0]:.1f}", "–", f"{errors.min():.1e}", "3",
        f"{record.environment.processor}, {record.created[:10]}",
    ]  # fmt: skip
