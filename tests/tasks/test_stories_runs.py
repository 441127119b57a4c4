"""Runs on stories: training, resuming, verifying, and the study's table."""

from __future__ import annotations

import math

import pytest
from stories_support import ROOT, SMALL, STORIES, write

from iclbench import UsageError, run, verify
from iclbench.api.config import parse_config
from iclbench.api.spec import RunSpec
from iclbench.display.study import study_table
from iclbench.runs.plan import resolve
from iclbench.runs.store import RecordStore
from iclbench.sweeps.files import expand, read_sweep_file
from iclbench.sweeps.table import StudyTable
from iclbench.training.loop import Training
from iclbench_stories.corpus import open_corpus

MODELS = [
    ("transformer", {"heads": 2, "head_width": 8, "tied": True}),
    ("baseconv", {}),
    ("gd-transformer", {"embedding": 16, "heads": 2, "kernel": "softmax", "feed_forward": True}),
    ("gd-transformer-causal", {"embedding": 16, "heads": 2, "kernel": "linear", "blocks": 2}),
]


def train(model, args, out, **options):
    """The record of a short run; `options` replace its arguments."""
    defaults = {"recipe": "smoke", "eval_prompts": 16, "seeds": 2, "task_args": SMALL}
    recipe_args = {"steps": 6, "chunk": 2, "learning_rate": 1e-2}
    defaults |= {"model_args": args, "recipe_args": recipe_args, "out": out}
    return run(model=model, task="stories", **{**defaults, **options})


@pytest.mark.parametrize(("model", "args"), MODELS, ids=[name for name, _ in MODELS])
def test_models_are_trained_evaluated_and_verified(model, args, tmp_path):
    record = train(model, args, tmp_path)
    assert record.training.note is None
    assert record.training.curve[-1][0] < record.training.curve[0][0]
    assert record.main.floor.name == "true ending"
    assert record.metrics["nll"].n == 16
    assert record.metrics["repetition"].n == record.floor["repetition"].n == 4
    checks = verify(RecordStore(tmp_path).path(record.spec))
    assert [check.name for check in checks if not check.holds] == []


def test_an_exact_model_with_two_blocks_is_trained_on_prefixes(tmp_path):
    args = {"embedding": 8, "kernel": "rbf", "blocks": 2}
    record = train("gd-transformer", args, tmp_path, task_args={**SMALL, "prefixes": 2}, seeds=1)
    assert record.metrics["nll"].mean < math.log(300)
    assert "repetition" in record.metrics


def test_an_interrupted_run_continues_to_the_same_bits(tmp_path, monkeypatch):
    args = {"steps": 6, "chunk": 2, "accumulate": 4, "batch": 8}
    whole = train("transformer", {}, tmp_path / "a", recipe_args=args, seeds=1)
    plain, calls = Training.advance, []

    def interrupt_at_third_call(self):
        calls.append(self.step)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(self)

    monkeypatch.setattr(Training, "advance", interrupt_at_third_call)
    with pytest.raises(KeyboardInterrupt):
        train("transformer", {}, tmp_path / "b", recipe_args=args, seeds=1, checkpoint_seconds=0)
    again = train("transformer", {}, tmp_path / "b", recipe_args=args, seeds=1)
    assert calls[3] == 4
    assert again.weights_file.sha256 == whole.weights_file.sha256
    assert again.training.curve == whole.training.curve


def test_a_run_s_id_depends_on_the_content_of_the_data(tmp_path):
    path = write(tmp_path / "a.jsonl")

    def resolved_spec():
        open_corpus.cache_clear()
        args = {**SMALL, "data": str(path)}
        return resolve(RunSpec(model="transformer", task="stories", task_args=args)).spec

    first = resolved_spec()
    assert first.data_digest is not None
    assert resolved_spec().id == first.id
    write(path, STORIES[:50])
    assert resolved_spec().id != first.id


def test_the_study_s_cells_run_and_its_table_shows_them(tmp_path):
    file = read_sweep_file(ROOT / "tasks" / "iclbench_stories" / "sweeps" / "endings.toml")
    paper = file.sized("paper")
    cells = [cell for grid in file.grid for cell in expand(grid, file.defaults)]
    paper_cells = [cell for grid in paper.grid for cell in expand(grid, paper.defaults)]
    assert len(cells) == len(paper_cells) == 8
    records = []
    for cell in (cells[0], cells[1], cells[-1]):
        small = {**cell, "task_args": SMALL, "out": tmp_path, "eval_prompts": 8}
        small["recipe_args"] = {"steps": 1, "batch": 2, "warmup": 0}
        records.append(run(**small))
        task_args = {**SMALL, "data": "generated", "tokenizer": "bpe"}
        full = RunSpec(**{**cell, "recipe": "paper", "task_args": task_args, "recipe_args": {}})
        assert resolve(full).recipe.steps > 1000
    floor, *rows = study_table(file.table, records, RecordStore(tmp_path)).rows
    assert floor["model"].startswith("target: true ending")
    assert [row["attention weights"].text for row in rows] == ["2,048", "2,048", "49,152"]
    assert sum("feed_forward=true" in row["model"] for row in rows) == 1


def test_a_table_needs_metrics():
    with pytest.raises(UsageError):
        parse_config(StudyTable, {"metrics": []}, "table")
