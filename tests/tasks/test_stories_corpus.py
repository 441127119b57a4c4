"""The corpus of stories: reading, filtering, packing and tokenizing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from stories_support import ROOT, STORIES, packed, texts_of, write

from iclbench import RecordError, UsageError
from iclbench_stories import corpus as corpora
from iclbench_stories import sources, vocabulary
from iclbench_stories.fetch import chapters, read_table
from iclbench_stories.generator import generated_stories
from iclbench_stories.vocabulary import Vocabulary


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
    with pytest.raises(UsageError, match="SHA-256 differs"):
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


def test_tales_of_a_table_and_chapters_of_a_book():
    table = 'Title\tContent\nstring\tstring\n\tinclude\nA\tOnce.  Then.\n\nB\t"""Oh"" he said"\n'
    assert list(read_table(table)) == [{"title": "A", "text": "Once.\nThen."}]
    body = "word " * 500
    book = f"EMMA\n\nby her\n\nCHAPTER I\n\n{body}\n\nCHAPTER II\n\n{body}\nend\n\n{body}"
    assert [len(chapter.splitlines()) for chapter in chapters(book)] == [1, 2]
