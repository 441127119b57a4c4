"""The task `stories`: what it reads, packs, asks, measures and generates."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from iclbench import EvaluationContext, RecordError, Text, UsageError, load_task, run, verify
from iclbench.api.config import parse_config
from iclbench.api.grader import Grader
from iclbench.api.spec import RunSpec
from iclbench.leaderboards.tables import render_study
from iclbench.nn.logits import token_loss
from iclbench.runs.plan import resolve
from iclbench.runs.store import RecordStore
from iclbench.sweeps.files import expand, read_sweep_file
from iclbench.sweeps.table import StudyTable
from iclbench_stories import corpus as corpora
from iclbench_stories import sources, vocabulary
from iclbench_stories.corpus import open_corpus
from iclbench_stories.fetch import chapters, read_table
from iclbench_stories.generator import generated_stories
from iclbench_stories.text_metrics import distinct, repetition
from iclbench_stories.vocabulary import END, Vocabulary

ROOT = Path(__file__).parents[2]
STORIES = generated_stories(60, 0)
SMALL = {"vocabulary": 300, "length": 16, "beginning": 6, "endings": 4}


def settings(data, **args):
    given = {"column": "text", "revision": None, "tokenizer": "bpe", "vocabulary": 300}
    return {**given, "held_out": 0.2, "seed": 0, "data": str(data), **args}


def packed(data, **args):
    open_corpus.cache_clear()
    return open_corpus(**settings(data, **args))


def write(path, texts=STORIES, column="text"):
    rows = [{column: text} for text in texts]
    if path.suffix == ".parquet":
        import pandas as pd

        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".txt":
        path.write_text(f"\n{END}\n".join(texts), "utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def texts_of(stream, words):
    """The stories of a stream: END stands before each and at the end."""
    ids = stream.tolist()
    assert ids[0] == ids[-1] == words.end
    places = [i for i, one in enumerate(ids) if one == words.end]
    return [words.decode(ids[a:b]) for a, b in pairwise(places)]


def test_generated_stories_are_those_of_their_seed():
    digest = hashlib.sha256("\n".join(STORIES).encode()).hexdigest()
    assert digest.startswith("a8056b20")
    assert generated_stories(3, 0) == STORIES[:3]
    assert not set(generated_stories(20, 1)) & set(STORIES)
    assert len(set(STORIES)) == len(STORIES)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet", "a.txt"])
def test_a_file_is_packed_whole_and_split_by_content(tmp_path, name):
    found = packed(write(tmp_path / name))
    train, held_out = (texts_of(s, found.vocabulary) for s in (found.train, found.held_out))
    assert sorted(train + held_out) == sorted(STORIES)
    assert len(held_out) == 12
    other = packed(write(tmp_path / f"b{name[1:]}", STORIES[::-1]))
    assert set(texts_of(other.held_out, other.vocabulary)) == set(held_out)
    ids = found.held_out[found.starts]
    assert len(ids) == 12
    assert set(ids.tolist()) == {found.vocabulary.end}


def test_what_is_no_story_is_left_out_and_counted(tmp_path):
    texts = [*STORIES[:10], STORIES[0], "too short", STORIES[1] + " It said â€œhelloâ€.", ""]
    found = packed(write(tmp_path / "a.jsonl", texts))
    assert found.counts == {
        "stories": 10, "held_out": 2, "short": 2, "damaged": 1, "repeated": 1
    }  # fmt: skip


def test_sources_are_joined(tmp_path):
    write(tmp_path / "a.jsonl", STORIES[:20])
    write(tmp_path / "b.jsonl", STORIES[15:30])
    found = packed(f"{tmp_path / 'a.jsonl'}+{tmp_path / 'b.jsonl'}")
    assert found.counts["stories"] == 30
    assert packed(tmp_path).counts == found.counts


def test_a_corpus_is_packed_once_for_each_content(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl")
    first = packed(path)
    monkeypatch.setattr(corpora._Packing, "write", lambda *_: pytest.fail("packed again"))
    moved = path.rename(tmp_path / "moved.jsonl")
    assert packed(moved).digest == first.digest
    assert isinstance(packed(moved).train, np.memmap)
    monkeypatch.undo()
    changed = packed(write(tmp_path / "moved.jsonl", STORIES[:40]))
    assert changed.digest != first.digest


def test_a_damaged_cache_is_told(tmp_path):
    found = packed(write(tmp_path / "a.jsonl", STORIES[:30]))
    with Path(found.train.filename).open("r+b") as file:
        file.truncate(100)
    with pytest.raises(RecordError, match="cut"):
        packed(tmp_path / "a.jsonl")
    (Path(found.train.filename).parent / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError):
        packed(tmp_path / "a.jsonl")


def damaged(folder, name="a.jsonl"):
    (folder / name).write_bytes(b"\x00PAR1 not what it says")
    return folder / name


@pytest.mark.parametrize(
    ("make", "args", "reason"),
    [
        (lambda f: "tinystory", {}, "there is no data 'tinystory'"),
        (lambda f: f / "none.jsonl", {}, "there is no data"),
        (lambda f: "data/no-tales", {}, "make data"),
        (lambda f: f, {}, "has no file that ends in"),
        (lambda f: write(f / "a.jsonl"), {"column": "story"}, "no column 'story'; it has text"),
        (lambda f: write(f / "a.jsonl", [1.5, 2.5]), {}, "does not hold text"),
        (lambda f: write(f / "a.jsonl", ["short"]), {}, "holds 0 stories"),
        (lambda f: write(f / "a.txt", STORIES[:1]), {}, "holds 1 stories"),
        (damaged, {}, "can't be read"),
        (lambda f: damaged(f, "a.parquet"), {}, "can't be read"),
        (lambda f: write(f / "a.jsonl"), {"vocabulary": 9999}, "set vocabulary="),
        (lambda f: write(f / "a.jsonl"), {"tokenizer": "gpt3"}, "there is no tokenizer 'gpt3'"),
        (lambda f: write(f / "a.jsonl"), {"tokenizer": str(ROOT / "LICENSE")}, "is no file of"),
        (lambda f: write(f / "a.jsonl"), {"tokenizer": str(ROOT / "docs")}, "has no encoder.json"),
    ],
)
def test_bad_input_is_told_in_one_line(tmp_path, make, args, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        packed(make(tmp_path), **args)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("error", [ConnectionError("Couldn't reach the hub"), OSError("offline")])
def test_a_missing_network_is_told(monkeypatch, error):
    def offline(*words, **options):
        raise error

    monkeypatch.setattr(sources.import_datasets(), "load_dataset", offline)
    for name in ("tinystories", "someone/something"):
        with pytest.raises(UsageError, match=r"can't be had from the hub .* data=PATH"):
            packed(name)


def test_a_set_of_the_hub_is_read_with_all_its_splits(monkeypatch):
    datasets = sources.import_datasets()
    asked = []

    def load(name, **options):
        asked.append((name, options))
        parts = {"train": STORIES[:30], "validation": STORIES[30:40]}
        made = {k: datasets.Dataset.from_dict({"text": v}) for k, v in parts.items()}
        return datasets.DatasetDict(made)

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert packed("tinystories", revision="abc").counts["stories"] == 40
    assert asked[0] == ("roneneldan/TinyStories", {"revision": "abc"})


def test_missing_packages_are_told(monkeypatch):
    import sys

    for package, ask in (
        ("datasets", sources.import_datasets), ("tokenizers", vocabulary.import_tokenizers)
    ):  # fmt: skip
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(UsageError, match=f"{package}; pip install"):
            ask()


def test_gpt2_s_files_are_checked_and_asked_for(tmp_path, monkeypatch):
    for name in vocabulary.GPT2:
        (tmp_path / name).write_text("{}")
    with pytest.raises(UsageError, match="SHA-256 is another"):
        vocabulary.given_vocabulary(str(tmp_path))
    monkeypatch.setattr(vocabulary, "GPT2_FOLDER", tmp_path / "none")
    monkeypatch.setattr(vocabulary, "GPT2_PACKAGES", ())
    with pytest.raises(UsageError, match="make data"):
        vocabulary.given_vocabulary("gpt2")


@pytest.mark.skipif(
    not all((ROOT / "data" / "gpt2" / n).is_file() for n in vocabulary.GPT2),
    reason="GPT-2's files come by `make data`",
)
def test_gpt2_s_tokenizer():
    found = vocabulary.given_vocabulary(str(ROOT / "data" / "gpt2"))
    assert (found.size, found.end) == (50_257, 50_256)
    # Published ids.
    assert found.encode(["Hello world", " a  dog's"]) == [[15496, 995], [257, 220, 3290, 338]]


def test_a_vocabulary_decodes_what_it_encodes_and_counts_bytes(tmp_path):
    found = packed(write(tmp_path / "a.jsonl")).vocabulary
    for text in ("Once upon a time.", "Tab\tand\nline", "Größe, 日本 🙂"):
        (ids,) = found.encode([text])
        assert found.decode([found.end, *ids]) == text
        assert found.byte_lengths[ids].sum() == len(text.encode())
    path = tmp_path / "tokenizer.json"
    path.write_text(found.dump(), "utf-8")
    again = packed(tmp_path / "a.jsonl", tokenizer=str(path))
    assert again.vocabulary.encode(["a dog"]) == found.encode(["a dog"])


def test_a_tokenizer_without_an_end_is_refused():
    from tokenizers import Tokenizer, models

    with pytest.raises(UsageError, match="has no token"):
        Vocabulary.load(Tokenizer(models.BPE()).to_str(), "it")


def test_windows_hold_every_id_once_as_a_target():
    task = load_task("stories", **SMALL)
    stream = task.corpus.held_out
    count = (len(stream) - 1) // 16
    (batch,) = task.evaluation_batches(count, 0, torch.float32)
    assert batch.prompt.ids.shape == batch.target.shape == (count, 16)
    assert torch.equal(batch.prompt.ids[:, 1:], batch.target[:, :-1])
    asked = Counter(batch.target.flatten().tolist())
    assert asked == Counter(stream[1 : 16 * count + 1].tolist())
    with pytest.raises(UsageError, match=f"--eval-prompts {count} is the most"):
        task.evaluation_batches(count + 1, 0, torch.float32)


def test_evaluation_prompts_are_fixed():
    task = load_task("stories", **SMALL)
    assert task.evaluation_digest(8, 0).startswith("b98098c3")
    assert task.evaluation_digest(8, 1) != task.evaluation_digest(8, 0)
    few, more = task.evaluation_draws(3, 0), task.evaluation_draws(9, 0)
    assert (more["stories"][:3] == few["stories"]).all()
    assert len(more["stories"]) == 4


def test_stories_begin_with_end_and_are_held_out():
    task = load_task("stories", **SMALL)
    words = task.corpus.vocabulary
    held = texts_of(task.corpus.held_out, words)
    (batch,) = task.evaluation_batches(8, 0, torch.float32)
    endings = task._endings(batch)
    for beginning, ending in endings.completions(endings.true):
        assert any(story.startswith(beginning + ending) for story in held)
    assert (batch.truth["stories"][:, 0] == words.end).all()
    with pytest.raises(UsageError, match="set endings="):
        load_task("stories", **{**SMALL, "endings": 9999}).evaluation_batches(
            2000, 0, torch.float32
        )


@pytest.mark.parametrize(("prefixes", "readout"), [(1, (15,)), (4, (3, 7, 11, 15)), (None, None)])
def test_prefixes_that_are_asked_for(prefixes, readout):
    task = load_task("stories", **SMALL, prefixes=prefixes)
    readout = readout or tuple(range(16))
    assert task.signature.readout == readout
    (batch,) = task.evaluation_batches(4, 0, torch.float32)
    (whole,) = load_task("stories", **SMALL).evaluation_batches(4, 0, torch.float32)
    assert torch.equal(batch.target, whole.target[:, list(readout)])


@pytest.mark.parametrize(
    "args",
    [
        {"beginning": 16, "length": 16},
        {"prefixes": 17, "length": 16, "beginning": 4},
        {"top_k": 3},
        {"temperature": -1.0},
    ],
)
def test_settings_that_do_not_fit_are_refused(args):
    with pytest.raises(UsageError):
        load_task("stories", **args)


def test_a_short_held_out_split_is_told(tmp_path):
    path = write(tmp_path / "a.jsonl", STORIES[:3])
    task = load_task("stories", data=str(path), vocabulary=300, length=4000)
    with pytest.raises(UsageError, match="fewer than a window"):
        _ = task.signature


def test_losses_of_equal_chances():
    task = load_task("stories", **SMALL)
    (batch,) = task.evaluation_batches(5, 0, torch.float32)
    found = task.metrics(torch.zeros(5, 16, 300, dtype=torch.float64), batch)
    torch.testing.assert_close(found["nll"], torch.full((5,), math.log(300)).double())
    torch.testing.assert_close(found["perplexity"], torch.full((5,), 300.0).double())
    sizes = [len(task.corpus.vocabulary.decode(row.tolist()).encode()) for row in batch.target]
    expected = torch.tensor([16 * math.log2(300) / size for size in sizes]).double()
    torch.testing.assert_close(found["bits_per_byte"], expected, rtol=1e-6, atol=0)


def test_repetition_and_distinct_phrases():
    moral = "The moral of the story is to be kind. "
    assert repetition("one two three four five") == 0
    assert repetition(moral) == 0
    # 9 words: 9k − 3 phrases of four, of which 9 differ.
    assert repetition(moral * 5) == pytest.approx(1 - 9 / 42)
    assert distinct("a b a b", 1) == pytest.approx(2 / 4)
    assert distinct("a b a b", 2) == pytest.approx(2 / 3)
    assert distinct("", 1) == repetition("a") == 0


class Names(Grader):
    """Scores by the ending's length, and fails on the first."""

    def __init__(self):
        self.seen = []

    def grade(self, completions, folder):
        self.seen.append(list(completions))
        scores = [float(len(c.ending)) for c in completions]
        return {"length": [math.nan, *scores[1:]]}


class Model(torch.nn.Module):
    """After id i comes i + 1 modulo the vocabulary, but END."""

    def __init__(self, vocabulary):
        super().__init__()
        self.size, self.end = vocabulary.size, vocabulary.end

    def forward(self, prompt):
        following = (prompt.ids + 1) % self.size
        following = torch.where(following == self.end, (self.end + 1) % self.size, following)
        return torch.nn.functional.one_hot(following, self.size).float()


def context(grader=None, batch_size=None):
    generator = torch.Generator().manual_seed(0)
    return EvaluationContext(torch.device("cpu"), generator, None, batch_size, grader)


def test_endings_are_generated_measured_and_graded():
    task, grader = load_task("stories", **SMALL), Names()
    (batch,) = task.evaluation_batches(8, 0, torch.float32)
    model = Model(task.corpus.vocabulary)
    found = task.evaluate(model, batch, context(grader))
    losses = token_loss(model(Text(batch.prompt.ids)).double(), batch.target)
    torch.testing.assert_close(found["nll"], losses.mean(dim=1))
    # Position T answers too, so END, 6 ids and 10 more.
    assert found["ending_length"].tolist() == [10.0] * 4
    expected = [(int(row[6]) + k) % 300 for row in batch.truth["stories"] for k in range(1, 11)]
    endings = task._endings(batch)
    ids = endings.generate(model, context())
    assert list(chain(*ids)) == expected
    assert grader.seen[0] == endings.completions(ids)
    assert math.isnan(found["grade_length"][0])
    assert not found["grade_length"][1:].isnan().any()
    bottom = task.floor(batch, context(grader=grader))
    assert grader.seen[1] == endings.completions(endings.true)
    assert {"grade_length", "repetition"} <= set(bottom)
    assert "nll" not in bottom
    # Four of the model's and four of the stories'.
    assert task.completions(1, 8) == 8 == sum(map(len, grader.seen))


def test_a_text_does_not_depend_on_those_generated_beside_it():
    task = load_task("stories", **SMALL, temperature=1.0, top_k=50)
    (batch,) = task.evaluation_batches(8, 0, torch.float32)
    model = Model(task.corpus.vocabulary)
    texts = [task._endings(batch).generate(model, context(batch_size=n)) for n in (1, 3, None)]
    assert texts[0] == texts[1] == texts[2]


def test_without_endings_nothing_is_generated():
    task = load_task("stories", **{**SMALL, "endings": 0})
    (batch,) = task.evaluation_batches(3, 0, torch.float32)
    found = task.evaluate(Model(task.corpus.vocabulary), batch, context(grader=Names()))
    assert set(found) == {"nll", "perplexity", "bits_per_byte"}
    assert task.floor(batch, context()) == {}


def test_a_model_that_cannot_generate_is_refused_before_it_is_trained(tmp_path):
    with pytest.raises(UsageError, match="set endings=0"):
        run(model="baseconv", task="stories", task_args={**SMALL, "prefixes": 1}, recipe="smoke",
            eval_prompts=8, seeds=1, out=tmp_path)  # fmt: skip


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


def test_tales_of_a_table_and_chapters_of_a_book():
    table = 'Title\tContent\nstring\tstring\n\tinclude\nA\tOnce.  Then.\n\nB\t"""Oh"" he said"\n'
    assert list(read_table(table)) == [{"title": "A", "text": "Once.\nThen."}]
    body = "word " * 500
    book = f"EMMA\n\nby her\n\nCHAPTER I\n\n{body}\n\nCHAPTER II\n\n{body}\nend\n\n{body}"
    assert [len(chapter.splitlines()) for chapter in chapters(book)] == [1, 2]
