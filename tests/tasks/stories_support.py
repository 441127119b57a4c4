"""Stories for tests: small settings, and files of generated stories."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from iclbench_stories.corpus import open_corpus
from iclbench_stories.generator import generated_stories
from iclbench_stories.vocabulary import END

ROOT = Path(__file__).parents[2]
STORIES = generated_stories(60, 0)
SMALL = {"vocabulary": 300, "length": 16, "beginning": 6, "endings": 4}


def settings(data, **args):
    given = {"column": "text", "revision": None, "tokenizer": "bpe", "vocabulary": 300}
    return {**given, "held_out": 0.2, "seed": 0, "data": str(data), **args}


def packed(data, **args):
    open_corpus.cache_clear()
    return open_corpus(**settings(data, **args))


def write(path, texts=STORIES, column="text"):
    rows = [{column: text} for text in texts]
    if path.suffix == ".parquet":
        import pandas as pd

        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".txt":
        path.write_text(f"\n{END}\n".join(texts), "utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def texts_of(stream, words):
    """The stories of a stream: END stands before each and at the end."""
    ids = stream.tolist()
    assert ids[0] == ids[-1] == words.end
    places = [i for i, one in enumerate(ids) if one == words.end]
    return [words.decode(ids[a:b]) for a, b in pairwise(places)]
