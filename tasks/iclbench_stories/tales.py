"""The tales in this package: texts in the public domain, tokenized and split.

`tales.npz` holds their ids, END before every tale and at the end, and which tales are held out;
`bpe.json` holds the byte-level BPE of the training texts. `about.json` says where the texts come
from. `build_tales.py` makes the three files.
"""

from __future__ import annotations

import json
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from iclbench import RecordError, file_digest

from .vocabulary import Vocabulary, first_ids

FOLDER = Path(__file__).parent / "texts"
IDS, BPE, ABOUT = "tales.npz", "bpe.json", "about.json"


class Tales:
    """The tales in a folder; raises RecordError if a file is missing or was changed."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        try:
            self.about: dict[str, Any] = json.loads((folder / ABOUT).read_text("utf-8"))
            self.sha256: dict[str, str] = self.about["sha256"]
            changed = [
                name for name in (IDS, BPE) if file_digest(folder / name) != self.sha256[name]
            ]
        except (OSError, ValueError, KeyError) as error:
            raise RecordError(f"stories: {folder} is damaged: {error}") from None
        if changed:
            raise RecordError(f"stories: {folder / changed[0]} is damaged: its SHA-256 differs")

    def vocabulary(self, size: int | None = None) -> Vocabulary:
        """The BPE, or its first `size` ids; raises UsageError if it has fewer."""
        text = (self.folder / BPE).read_text("utf-8")
        return Vocabulary.load(first_ids(text, size, "data=tales") if size else text, BPE)

    @cached_property
    def texts(self) -> list[str]:
        """The text of every tale."""
        vocabulary, ids = self.vocabulary(), self._arrays["ids"]
        ends = np.flatnonzero(ids == vocabulary.end)
        return [vocabulary.decode(ids[a + 1 : b].tolist()) for a, b in pairwise(ends)]

    @property
    def held_out(self) -> list[str]:
        """The text of every held-out tale."""
        pairs = zip(self.texts, self._arrays["held_out"], strict=True)
        return [text for text, held_out in pairs if held_out]

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        with np.load(self.folder / IDS) as file:
            return {name: file[name] for name in ("ids", "held_out")}
