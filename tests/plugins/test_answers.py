"""Answers: what is kept of one is bounded, and so is the folder of stored answers."""

from __future__ import annotations

import json
import os

import pytest
from fake_openai import completion

from iclbench_graders import answers
from iclbench_graders.answers import Answer, AnswerFolder, read_body


def unchanged(text: str) -> str:
    return text


def read(body: object) -> Answer:
    return read_body(json.dumps(body).encode(), unchanged)


@pytest.mark.parametrize("field", ["content", "refusal"])
def test_a_long_text_is_not_kept(field):
    message = {"content": None, field: "x" * (answers.LONGEST_TEXT + 1)}
    answer = read(completion(message.pop("content"), **message))
    assert (answer.content, answer.refusal, answer.failure) == (None, None, "too long")
    with pytest.raises(ValueError, match="too long"):
        answer.grades()


def test_names_are_short_and_on_one_line():
    body = completion()
    body["model"] = "a\nb\x1b[31m\tc"
    body["choices"][0]["finish_reason"] = "x" * 1000
    answer = read(body)
    assert (answer.model, answer.finish_reason) == ("a b[31m c", None)


def test_an_impossible_number_of_tokens_is_no_valid_response():
    body = completion()
    body["usage"]["prompt_tokens"] = 10**400
    assert read(body).failure == "no valid response"


def test_a_body_nested_deep_is_no_valid_response():
    assert read_body(b'{"choices":' + b"[" * 100_000, unchanged).failure == "no valid response"


def test_a_full_folder_drops_its_oldest_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "MOST_FILES_OF_FOLDER", 3)
    folder = AnswerFolder(tmp_path, unchanged)
    for i in range(4):
        folder.put(f"00{i}", Answer(content=str(i)))
        folder.put(f"ff{i}", Answer(content=str(i)))
        for file in tmp_path.rglob(f"*{i}.json"):
            os.utime(file, (i + 1, i + 1))
    kept = {key: folder.get(key) for key in ("000", "001", "002", "003", "ff0", "ff3")}
    assert [key for key, answer in kept.items() if answer is None] == ["000", "ff0"]
    assert len(list(tmp_path.rglob("*.json"))) == 6


def test_a_file_that_is_too_large_or_no_file_counts_as_none(tmp_path):
    folder = AnswerFolder(tmp_path, unchanged)
    folder.put("00a", Answer(content="7"))
    (file,) = tmp_path.rglob("*.json")
    file.write_text(file.read_text() + " " * answers.LARGEST_FILE)
    assert folder.get("00a") is None
    file.unlink()
    os.mkfifo(file)
    assert folder.get("00a") is None


def test_a_key_that_was_stored_is_removed_when_it_is_read(tmp_path):
    AnswerFolder(tmp_path, unchanged).put("00a", Answer(content="a key", model="key"))
    answer = AnswerFolder(tmp_path, lambda text: text.replace("key", "-")).get("00a")
    assert answer is not None
    assert (answer.content, answer.model) == ("a -", "-")
