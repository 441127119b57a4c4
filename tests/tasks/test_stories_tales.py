"""The tales in the package: their origin, their split, and use without a network."""

from __future__ import annotations

import json
import shutil
import socket

import numpy as np
import pytest
from stories_support import texts_of
from wheel_support import wheel_files

from iclbench import RecordError, UsageError, load_task, run, verify
from iclbench.runs.store import RecordStore
from iclbench_stories import tales as module
from iclbench_stories.build_tales import overlap
from iclbench_stories.origins import OTHER_EDITIONS
from iclbench_stories.tales import FOLDER, Tales
from iclbench_stories.text_metrics import words_of
from iclbench_stories.vocabulary import first_ids, trained_vocabulary

TALES = Tales()


def test_every_tale_has_a_source_and_a_licence():
    sources = {source["name"]: source for source in TALES.about["sources"]}
    assert {tale["source"] for tale in TALES.about["tales"]} == set(sources)
    assert len(TALES.about["tales"]) == len(TALES.texts)
    for source in sources.values():
        assert source["licence"].startswith("public domain")
        assert len(source["sha256"]) == 64
        assert {"author", "translator", "edition", "file"} <= set(source)
    assert not {tale["title"] for tale in TALES.about["tales"]} & OTHER_EDITIONS


def test_the_record_states_where_the_tales_come_from():
    task = load_task("stories")
    assert task.config.data == "tales"
    assert task.title == "stories: tales in the public domain"
    assert task.provenance["sources"] == TALES.about["sources"]
    assert task.provenance["sha256"] == TALES.sha256
    generated = load_task("stories", data="generated")
    assert generated.title == "stories: generated stories (smoke test)"
    assert generated.provenance == {}


def test_no_tale_is_on_both_sides():
    corpus = load_task("stories").corpus
    sides = [set(texts_of(s, corpus.vocabulary)) for s in (corpus.train, corpus.held_out)]
    assert not sides[0] & sides[1]
    assert sides[1] == set(TALES.held_out)
    assert len(sides[0]) + len(sides[1]) == len(TALES.texts)
    titles = [tale["title"].lower() for tale in TALES.about["tales"]]
    assert len(set(titles)) == len(titles)


def test_held_out_tales_share_few_phrases_with_training():
    """The rates that the README states; generated stories share most of their phrases."""
    held_out = set(TALES.held_out)
    training = [text for text in TALES.texts if text not in held_out]
    assert overlap(training, TALES.held_out, 8) < 0.01
    assert overlap(training, TALES.held_out, 13) < 0.002
    assert overlap(["a b c d e", "x y z"], ["a b c q", "x y z"], 3) == pytest.approx(2 / 3)


def test_a_smaller_vocabulary_is_the_bpe_that_would_be_learned():
    """Learned again from the training tales, it has the same tokens and gives the same ids."""
    held_out = set(TALES.held_out)
    training = [text for text in TALES.texts if text not in held_out]
    short, learned = TALES.vocabulary(300), trained_vocabulary(iter([training]), 300)
    assert short.tokens() == learned.tokens()
    assert short.encode(TALES.texts[:3]) == learned.encode(TALES.texts[:3])
    with pytest.raises(UsageError, match=r"has a BPE of \d+ ids; set vocabulary="):
        first_ids((FOLDER / module.BPE).read_text("utf-8"), 99_999, "it")


def test_ids_decode_to_words():
    tale = TALES.texts[0]
    assert tale == tale.strip()
    assert len(words_of(tale)) > 100
    vocabulary = TALES.vocabulary(1024)
    (ids,) = vocabulary.encode([tale])
    assert vocabulary.decode(ids) == tale
    assert max(ids) < 1024


def test_a_changed_file_is_refused(tmp_path):
    folder = shutil.copytree(FOLDER, tmp_path / "tales")
    assert Tales(folder).texts == TALES.texts
    (folder / module.IDS).write_bytes((folder / module.IDS).read_bytes() + b" ")
    with pytest.raises(RecordError, match=r"tales.npz is damaged: its SHA-256 differs"):
        Tales(folder)
    (folder / module.ABOUT).write_text(json.dumps({}))
    with pytest.raises(RecordError, match="is damaged"):
        Tales(folder)


def test_tales_keep_their_split():
    with pytest.raises(UsageError, match="leave held_out out"):
        _ = load_task("stories", held_out=0.5).corpus


def test_tales_can_be_joined_with_other_stories():
    """Joined data are split and tokenized together."""
    corpus = load_task("stories", data="tales+generated", vocabulary=300, held_out=0.5).corpus
    assert corpus.counts["held_out"] == round(corpus.counts["stories"] / 2)


def test_the_tales_are_small_and_in_the_wheel():
    names = [module.IDS, module.BPE, module.ABOUT]
    assert {f"iclbench_stories/texts/{name}" for name in names} <= wheel_files()
    assert sum((FOLDER / name).stat().st_size for name in names) < 3_000_000
    assert np.load(FOLDER / module.IDS)["ids"].dtype == np.uint16


@pytest.fixture
def _no_network(monkeypatch, tmp_path):
    """No socket and no packed data."""

    def refuse(*_):
        pytest.fail("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("ICLBENCH_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_no_network")
@pytest.mark.parametrize(
    ("task", "args"),
    [
        ("stories", {"vocabulary": 300, "length": 16, "beginning": 6, "endings": 2}),
        ("imagenet", {"images": "fashion-mnist", "dim": 4}),
    ],
)
def test_runs_are_made_and_verified_without_a_network(task, args, tmp_path):
    options = {"steps": 2, "batch": 4}
    record = run(model="transformer", task=task, task_args=args, recipe="smoke", seeds=1,
                 recipe_args=options, eval_prompts=8, out=tmp_path / "out")  # fmt: skip
    assert record.main.provenance
    checks = verify(RecordStore(tmp_path / "out").path(record.spec))
    assert [check.name for check in checks if not check.holds] == []
