"""Documents: TOML files whose texts are shown as they are."""

from __future__ import annotations

import pytest

from iclbench import Config, UsageError
from iclbench.leaderboards.documents import read_document


class Notes(Config):
    texts: dict[str, list[str]] = {}
    limit: float = 0.0


def test_a_file_that_does_not_exist_has_the_defaults(tmp_path):
    assert read_document(tmp_path / "notes.toml", Notes) == Notes()


@pytest.mark.parametrize("text", ["a\\u001b[31m", "a\\n# b", "a\\u202e"])
def test_texts_and_keys_that_would_not_be_shown_as_they_are_are_refused(tmp_path, text):
    path = tmp_path / "notes.toml"
    for content in (f'texts.a = ["b", "{text}"]', f'texts."{text}" = ["a"]'):
        path.write_text(content)
        with pytest.raises(UsageError, match=r"notes.toml: .* has invisible characters") as raised:
            read_document(path, Notes)
        assert str(raised.value).isprintable()


def test_numbers_stay(tmp_path):
    path = tmp_path / "notes.toml"
    path.write_text('limit = 1.5\ntexts.a = ["é · 日本"]')
    assert read_document(path, Notes) == Notes(texts={"a": ["é · 日本"]}, limit=1.5)
