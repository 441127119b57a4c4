"""Small settings of the task stories, and files of generated stories, for tests."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from iclbench_stories.corpus import open_corpus
from iclbench_stories.generator import generated_stories
from iclbench_stories.vocabulary import END

ROOT = Path(__file__).parents[2]
STORIES = generated_stories(60, 0)
SMALL = {"data": "generated", "vocabulary": 300, "length": 16, "beginning": 6, "endings": 4}


def open_fresh_corpus(data, **args):
    """The corpus of `data` with small settings, read again even if it is in memory."""
    open_corpus.cache_clear()
    settings = {"column": "text", "revision": None, "tokenizer": "bpe", "vocabulary": 300}
    settings |= {"held_out": 0.2, "seed": 0, "data": str(data)}
    return open_corpus(**{**settings, **args})


def write(path, texts=STORIES, column="text"):
    """Write stories to a file in the format of its suffix."""
    rows = [{column: text} for text in texts]
    if path.suffix == ".parquet":
        import pandas as pd

        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".txt":
        path.write_text(f"\n{END}\n".join(texts), "utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def texts_of(stream, vocabulary):
    """The stories of a stream, which has END before every story and at the end."""
    ids = stream.tolist()
    assert ids[0] == ids[-1] == vocabulary.end
    ends = [position for position, token in enumerate(ids) if token == vocabulary.end]
    return [vocabulary.decode(ids[a:b]) for a, b in pairwise(ends)]
