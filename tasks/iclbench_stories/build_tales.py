"""`python -m iclbench_stories.build_tales`: make the tales of this package from public packages.

It needs a network, Debian's apt-get and the package rdata. The same packages give the same files.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from iclbench import UsageError, file_digest, write_atomically

from .generator import generated_stories
from .origins import Text, fetch_texts
from .tales import ABOUT, BPE, FOLDER, IDS
from .text_metrics import phrases_of, words_of
from .vocabulary import trained_vocabulary

#: Ids of the BPE; `vocabulary` may be less.
VOCABULARY = 4096
#: The source of texts for training only, and the share of the others' characters that is held out.
TRAINING_ONLY, HELD_OUT = "austen", 0.6
#: A tale that shares more than this of its phrases of 8 words with an earlier one is left out.
PHRASE, MOST_SHARED = 8, 0.1


def main() -> None:
    """Fetch, filter, split and tokenize the tales; write the three files and print their sizes."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    with tempfile.TemporaryDirectory() as scratch:
        try:
            sources, texts = fetch_texts(Path(scratch))
        except UsageError as error:
            sys.exit(str(error))
    kept = without_repetitions(texts)
    held_out = split(kept)
    write(folder, sources, kept, held_out)
    training = [tale.text for tale, out in zip(kept, held_out, strict=True) if not out]
    tested = [tale.text for tale, out in zip(kept, held_out, strict=True) if out]
    print(f"{len(training)} texts for training, {len(tested)} held out, "
          f"{len(texts) - len(kept)} left out")  # fmt: skip
    for n in (4, 8, 13):
        print(f"{overlap(training, tested, n):.3%} of held-out phrases of {n} words in training")
    generated = generated_stories(4000, 0)
    rate = overlap(generated[:3200], generated[3200:], PHRASE)
    print(f"{rate:.0%} of phrases of {PHRASE} words in generated stories are in 3,200 others")
    for name in (IDS, BPE, ABOUT):
        print(f"{folder / name}: {(folder / name).stat().st_size:,} bytes")


def without_repetitions(tales: Sequence[Text]) -> list[Text]:
    """The tales that do not repeat a title, or much of the text, of an earlier one."""
    seen: set[tuple[str, ...]] = set()
    titles: set[str] = set()
    kept = []
    for tale in tales:
        phrases = phrases_of(words_of(tale.text), PHRASE)
        shared = sum(phrase in seen for phrase in phrases)
        if tale.title.lower() not in titles and shared <= MOST_SHARED * len(phrases):
            kept.append(tale)
            seen.update(phrases)
            titles.add(tale.title.lower())
    return kept


def split(tales: Sequence[Text]) -> list[bool]:
    """Whether each text is held out: tales with the lowest hashes, up to a share of characters."""
    candidates = [i for i, tale in enumerate(tales) if tale.source != TRAINING_ONLY]
    left = HELD_OUT * sum(len(tales[i].text) for i in candidates)
    held_out = [False] * len(tales)
    for i in sorted(candidates, key=lambda i: hashlib.sha256(tales[i].text.encode()).digest()):
        if left > 0:
            held_out[i] = True
            left -= len(tales[i].text)
    return held_out


def overlap(training: Sequence[str], tested: Sequence[str], n: int) -> float:
    """The share of phrases of n words in `tested` that also occur in `training`."""
    seen = {phrase for text in training for phrase in phrases_of(words_of(text), n)}
    phrases = [phrase for text in tested for phrase in phrases_of(words_of(text), n)]
    return sum(phrase in seen for phrase in phrases) / len(phrases)


def write(
    folder: Path, sources: list[dict[str, Any]], tales: Sequence[Text], held_out: Sequence[bool]
) -> None:
    """Write the tales' ids, the BPE of the training tales, and their origin."""
    training = [tale.text for tale, out in zip(tales, held_out, strict=True) if not out]
    vocabulary = trained_vocabulary(iter([training]), VOCABULARY)
    ids = [vocabulary.end]
    for tale in vocabulary.encode([tale.text for tale in tales]):
        ids += [*tale, vocabulary.end]
    packed = io.BytesIO()
    np.savez_compressed(
        packed, ids=np.array(ids, dtype=np.uint16), held_out=np.array(held_out, dtype=bool)
    )
    write_atomically(folder / IDS, packed.getvalue())
    write_atomically(folder / BPE, vocabulary.dump().encode())
    about = {
        "sources": sources,
        "sha256": {name: file_digest(folder / name) for name in (IDS, BPE)},
        "tales": [{"title": tale.title, "source": tale.source} for tale in tales],
    }
    write_atomically(
        folder / ABOUT, (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()
    )


if __name__ == "__main__":
    main()
