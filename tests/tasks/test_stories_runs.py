"""Runs on stories: training, resuming, verifying, and the study."""

from __future__ import annotations

import math

import pytest
from stories_support import ROOT, SMALL, STORIES, write

from iclbench import UsageError, run, verify
from iclbench.api.config import parse_config
from iclbench.api.spec import RunSpec
from iclbench.leaderboards.tables import render_study
from iclbench.runs.plan import resolve
from iclbench.runs.store import RecordStore
from iclbench.sweeps.files import expand, read_sweep_file
from iclbench.sweeps.table import StudyTable
from iclbench_stories.corpus import open_corpus

MODELS = [
    ("transformer", {"heads": 2, "head_width": 8, "tied": True}),
    ("baseconv", {}),
    ("gd-transformer", {"embedding": 16, "heads": 2, "kernel": "softmax", "feed_forward": True}),
    ("gd-transformer-causal", {"embedding": 16, "heads": 2, "kernel": "linear", "blocks": 2}),
]


def trained(model, args, out, **more):
    given = {"recipe": "smoke", "eval_prompts": 16, "seeds": 2, "task_args": SMALL}
    recipe_args = {"steps": 6, "chunk": 2, "learning_rate": 1e-2}
    given |= {"model_args": args, "recipe_args": recipe_args, "out": out}
    return run(model=model, task="stories", **{**given, **more})


@pytest.mark.parametrize(("model", "args"), MODELS, ids=[m for m, _ in MODELS])
def test_every_kind_of_model_is_trained_evaluated_and_verified(model, args, tmp_path):
    record = trained(model, args, tmp_path)
    assert record.training.note is None
    assert record.training.curve[-1][0] < record.training.curve[0][0]
    assert record.floor_name == "true ending"
    assert record.metrics["nll"].n == 16
    assert record.metrics["repetition"].n == record.floor["repetition"].n == 4
    checks = verify(RecordStore(tmp_path).path(record.spec))
    assert [c.name for c in checks if not c.holds] == []


def test_an_exact_model_of_two_blocks_is_trained_on_prefixes(tmp_path):
    args = {"embedding": 8, "kernel": "rbf", "blocks": 2}
    record = trained("gd-transformer", args, tmp_path, task_args={**SMALL, "prefixes": 2}, seeds=1)
    assert record.metrics["nll"].mean < math.log(300)
    assert "repetition" in record.metrics


def test_a_run_that_was_interrupted_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    from iclbench.training.loop import Training

    args = {"steps": 6, "chunk": 2, "accumulate": 4, "batch": 8}
    whole = trained("transformer", {}, tmp_path / "a", recipe_args=args, seeds=1)
    plain, calls = Training.advance, []

    def stops(self):
        calls.append(self.step)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(self)

    monkeypatch.setattr(Training, "advance", stops)
    with pytest.raises(KeyboardInterrupt):
        trained("transformer", {}, tmp_path / "b", recipe_args=args, seeds=1, checkpoint_seconds=0)
    again = trained("transformer", {}, tmp_path / "b", recipe_args=args, seeds=1)
    assert calls[3] == 4
    assert again.weights.sha256 == whole.weights.sha256
    assert again.training.curve == whole.training.curve


def test_the_data_enter_the_run_s_id_by_content(tmp_path):
    path = write(tmp_path / "a.jsonl")

    def found():
        open_corpus.cache_clear()
        args = {**SMALL, "data": str(path)}
        return resolve(RunSpec(model="transformer", task="stories", task_args=args)).spec

    first = found()
    assert first.data_digest is not None
    assert found().id == first.id
    write(path, STORIES[:50])
    assert found().id != first.id


def test_the_study_s_cells_can_be_run_and_its_table_shows_them(tmp_path):
    file = read_sweep_file(ROOT / "tasks" / "iclbench_stories" / "study.toml")
    cells = [c for g in file.grid for c in expand(g, file.defaults)]
    assert len(cells) == 8
    paper = [c for g in file.sized("paper").grid for c in expand(g, file.sized("paper").defaults)]
    assert len(paper) == 8
    records = []
    for cell in (cells[0], cells[1], cells[-1]):
        small = {**cell, "task_args": SMALL, "out": tmp_path, "eval_prompts": 8}
        small["recipe_args"] = {"steps": 1, "batch": 2, "warmup": 0}
        records.append(run(**small))
        own = {**SMALL, "data": "generated", "tokenizer": "bpe"}
        asked = RunSpec(**{**cell, "recipe": "paper", "task_args": own, "recipe_args": {}})
        assert resolve(asked).recipe.steps > 1000
    text = render_study(file.table, records, RecordStore(tmp_path))
    lines = text.splitlines()
    assert "attention weights" in lines[0]
    assert lines[2].startswith("| true ending")
    assert [line.split("|")[-2].strip() for line in lines[3:]] == ["2,048", "2,048", "49,152"]
    assert sum("feed_forward=True" in line for line in lines) == 1


def test_a_table_needs_metrics():
    with pytest.raises(UsageError):
        parse_config(StudyTable, {"metrics": []}, "table")
