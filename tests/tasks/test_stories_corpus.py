"""The corpus of stories: reading, filtering, packing and tokenizing."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from stories_support import ROOT, STORIES, open_fresh_corpus, texts_of, write

from iclbench import RecordError, UsageError
from iclbench_stories import corpus as corpora
from iclbench_stories import sources, vocabulary
from iclbench_stories.generator import generated_stories
from iclbench_stories.origins import chapters, read_table
from iclbench_stories.vocabulary import END, Vocabulary


def test_generated_stories_depend_only_on_the_seed():
    digest = hashlib.sha256("\n".join(STORIES).encode()).hexdigest()
    assert digest.startswith("a8056b20")
    assert generated_stories(3, 0) == STORIES[:3]
    assert not set(generated_stories(20, 1)) & set(STORIES)
    assert len(set(STORIES)) == len(STORIES)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet", "a.txt"])
def test_a_file_is_packed_completely_and_split_by_content(tmp_path, name):
    corpus = open_fresh_corpus(write(tmp_path / name))
    train, held_out = (texts_of(s, corpus.vocabulary) for s in (corpus.train, corpus.held_out))
    assert sorted(train + held_out) == sorted(STORIES)
    assert len(held_out) == 12
    backwards = open_fresh_corpus(write(tmp_path / f"b{name[1:]}", STORIES[::-1]))
    assert set(texts_of(backwards.held_out, backwards.vocabulary)) == set(held_out)
    ids = corpus.held_out[corpus.starts]
    assert len(ids) == 12
    assert set(ids.tolist()) == {corpus.vocabulary.end}


def test_unsuitable_stories_are_left_out_and_counted(tmp_path, capsys):
    texts = [*STORIES[:10], STORIES[0], "too short", STORIES[1] + " It said â€œhelloâ€.", ""]
    corpus = open_fresh_corpus(write(tmp_path / "a.jsonl", texts))
    assert corpus.counts == {
        "stories": 10, "held_out": 2, "short": 2, "damaged": 1, "repeated": 1
    }  # fmt: skip
    printed = " ".join(capsys.readouterr().err.split())
    assert "8 stories to train on and 2 held out; 4 are left out as too short" in printed


def test_sources_are_joined(tmp_path):
    write(tmp_path / "a.jsonl", STORIES[:20])
    write(tmp_path / "b.jsonl", STORIES[15:30])
    corpus = open_fresh_corpus(f"{tmp_path / 'a.jsonl'}+{tmp_path / 'b.jsonl'}")
    assert corpus.counts["stories"] == 30
    assert open_fresh_corpus(tmp_path).counts == corpus.counts


def test_a_corpus_is_packed_once_per_content(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl")
    first = open_fresh_corpus(path)
    monkeypatch.setattr(corpora._Packing, "write", lambda *_: pytest.fail("packed again"))
    moved = path.rename(tmp_path / "moved.jsonl")
    assert open_fresh_corpus(moved).digest == first.digest
    assert isinstance(open_fresh_corpus(moved).train, np.memmap)
    monkeypatch.undo()
    changed = open_fresh_corpus(write(tmp_path / "moved.jsonl", STORIES[:40]))
    assert changed.digest != first.digest


def test_a_file_that_is_renamed_for_another_reader_is_read_again(tmp_path):
    """JSON lines in a file of text are one story, which is not what they are as JSON lines."""
    lines = write(tmp_path / "a.jsonl")
    as_lines = open_fresh_corpus(lines)
    text = lines.rename(tmp_path / "a.txt")
    with pytest.raises(UsageError, match=r"holds [01] stories"):
        open_fresh_corpus(text)
    text.rename(lines)
    assert open_fresh_corpus(lines).digest == as_lines.digest


def test_a_damaged_cache_is_refused(tmp_path):
    corpus = open_fresh_corpus(write(tmp_path / "a.jsonl", STORIES[:30]))
    with Path(corpus.train.filename).open("r+b") as file:
        file.truncate(100)
    with pytest.raises(RecordError, match="cut"):
        open_fresh_corpus(tmp_path / "a.jsonl")


def test_a_cache_that_says_less_is_refused(tmp_path):
    corpus = open_fresh_corpus(write(tmp_path / "a.jsonl", STORIES[:32]))
    about = Path(corpus.train.filename).parent / "about.json"
    values = json.loads(about.read_text())
    for left_out in values:
        about.write_text(json.dumps({name: v for name, v in values.items() if name != left_out}))
        with pytest.raises(RecordError, match=f"damaged .*{left_out}"):
            open_fresh_corpus(tmp_path / "a.jsonl")
    about.write_text("[]")
    with pytest.raises(RecordError, match="damaged"):
        open_fresh_corpus(tmp_path / "a.jsonl")


def test_a_damaged_tokenizer_in_the_cache_is_refused(tmp_path):
    corpus = open_fresh_corpus(write(tmp_path / "a.jsonl", STORIES[:31]))
    (Path(corpus.train.filename).parent / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match=r"tokenizers"):
        open_fresh_corpus(tmp_path / "a.jsonl")


def write_damaged(folder, name="a.jsonl"):
    """Write a file that is not of its suffix's format."""
    (folder / name).write_bytes(b"\x00PAR1 not what it says")
    return folder / name


@pytest.mark.parametrize(
    ("make", "args", "reason"),
    [
        (lambda f: "tinystory", {}, "unknown data 'tinystory'"),
        (lambda f: f / "none.jsonl", {}, "unknown data"),
        (lambda f: f, {}, "has no file that ends in"),
        (lambda f: write(f / "a.jsonl"), {"column": "story"}, "no column 'story'; it has text"),
        (lambda f: write(f / "a.jsonl", [1.5, 2.5]), {}, "does not hold text"),
        (lambda f: write(f / "a.jsonl", ["short"]), {}, "holds 0 stories"),
        (lambda f: write(f / "a.txt", STORIES[:1]), {}, "holds 1 stories"),
        (write_damaged, {}, "can't be read"),
        (lambda f: write_damaged(f, "a.parquet"), {}, "can't be read"),
        (lambda f: write(f / "a.jsonl"), {"vocabulary": 9999}, "set vocabulary="),
        (lambda f: "tales+", {}, "names nothing before or after a .$"),
        (lambda f: "tales", {"revision": "abc"}, "data=tales is not on the hub"),
        (lambda f: "generated+tales", {"column": "story"}, "generated.tales has no columns"),
        (lambda f: write(f / "a.jsonl"), {"tokenizer": "gpt3"}, "there is no tokenizer 'gpt3'"),
        (lambda f: write(f / "a.jsonl"), {"tokenizer": str(ROOT / "LICENSE")}, "is not a file of"),
        (lambda f: write(f / "a.jsonl"), {"tokenizer": str(ROOT / "docs")}, "has no encoder.json"),
    ],
)
def test_bad_input_is_a_one_line_error(tmp_path, make, args, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        open_fresh_corpus(make(tmp_path), **args)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("error", [ConnectionError("Couldn't reach the hub"), OSError("offline")])
def test_a_missing_network_is_an_error(monkeypatch, error):
    def offline(*args, **options):
        raise error

    monkeypatch.setattr(sources.import_datasets(), "load_dataset", offline)
    for name in ("tinystories", "someone/something"):
        with pytest.raises(UsageError, match=r"can't be loaded from the hub .* data=PATH"):
            open_fresh_corpus(name)


def test_a_data_set_from_the_hub_is_read_with_all_its_splits(monkeypatch):
    datasets = sources.import_datasets()
    calls = []

    def load(name, **options):
        calls.append((name, options))
        texts = {"train": STORIES[:30], "validation": STORIES[30:40]}
        splits = {k: datasets.Dataset.from_dict({"text": v}) for k, v in texts.items()}
        return datasets.DatasetDict(splits)

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert open_fresh_corpus("tinystories", revision="abc").counts["stories"] == 40
    assert calls[0] == ("roneneldan/TinyStories", {"revision": "abc"})


def test_gpt2_s_files_are_checked_and_their_absence_is_an_error(tmp_path, monkeypatch):
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
    reason="`make data` fetches GPT-2's files",
)
def test_gpt2_s_tokenizer():
    gpt2 = vocabulary.given_vocabulary(str(ROOT / "data" / "gpt2"))
    assert (gpt2.size, gpt2.end) == (50_257, 50_256)
    # Published ids.
    assert gpt2.encode(["Hello world", " a  dog's"]) == [[15496, 995], [257, 220, 3290, 338]]


def test_decoding_inverts_encoding_and_bytes_are_counted(tmp_path):
    words = open_fresh_corpus(write(tmp_path / "a.jsonl")).vocabulary
    for text in ("Once upon a time.", "Tab\tand\nline", "Größe, 日本 🙂"):
        (ids,) = words.encode([text])
        assert words.decode([words.end, *ids]) == text
        assert words.byte_lengths[ids].sum() == len(text.encode())
    path = tmp_path / "tokenizer.json"
    path.write_text(words.dump(), "utf-8")
    again = open_fresh_corpus(tmp_path / "a.jsonl", tokenizer=str(path))
    assert again.vocabulary.encode(["a dog"]) == words.encode(["a dog"])


def test_a_tokenizer_without_an_end_token_is_refused():
    from tokenizers import Tokenizer, models

    with pytest.raises(UsageError, match="has no token"):
        Vocabulary.load(Tokenizer(models.BPE()).to_str(), "it")


def test_a_tokenizer_that_cuts_or_fills_texts_no_longer_does():
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({END: 0, "a": 1, "dog": 2}, unk_token=END))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=8)
    words = Vocabulary.load(tokenizer.to_str(), "it")
    assert words.encode(["a dog a dog", "a"]) == [[1, 2, 1, 2], [1]]


def test_tables_of_tales_and_chapters_of_books_are_parsed():
    table = "Title\tContent\nstring\tstring\n\tinclude\nA\tOnce.  Then.\n\nHerr Korbes\tModern.\n"
    assert list(read_table(table)) == [("A", "Once.\nThen.")]
    body = "word " * 500
    book = f"EMMA\n\nby her\n\nCHAPTER I\n\n{body}\n\nCHAPTER II\n\n{body}\nend\n\n{body}"
    assert [len(chapter.splitlines()) for chapter in chapters(book)] == [1, 2]


def test_two_processes_may_pack_a_corpus_at_once(tmp_path, monkeypatch):
    """The second finds the folder of the first, which has the same files and stays."""
    path = write(tmp_path / "a.jsonl", STORIES[3:33])
    rename = Path.rename

    def overtaken(self, target):
        rename(Path(shutil.copytree(self, f"{self}.other")), target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", overtaken)
    first = open_fresh_corpus(path)
    monkeypatch.undo()
    folder = Path(first.train.filename).parent
    assert open_fresh_corpus(path).digest == first.digest
    assert [p for p in folder.parent.iterdir() if p.name.startswith(".")] == []


def test_a_folder_that_lost_a_file_is_packed_again(tmp_path):
    path = write(tmp_path / "a.jsonl", STORIES[4:34])
    first = open_fresh_corpus(path)
    (Path(first.train.filename).parent / "about.json").unlink()
    assert open_fresh_corpus(path).digest == first.digest
