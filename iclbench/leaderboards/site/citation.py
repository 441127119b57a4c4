"""How to cite the software: CITATION.cff and CITATION.bib, from the installed distribution."""

from __future__ import annotations

from importlib import metadata

AUTHOR = "The iclbench contributors"
#: What tells the boards of one day from those of another.
BOARDS = "Rows of the boards, rows.csv"
#: Of the version that is cited.
YEAR = 2026


def _facts() -> tuple[str, str, str]:
    """The title, version and licence: that of the code, not of what else the package ships."""
    about = metadata.metadata("iclbench")
    summary = about["Summary"].removeprefix("A plugin-based ")
    keys = ("License-Expression", "License")
    licence = next((about[key] for key in keys if key in about), "Apache-2.0")
    return f"iclbench: a {summary}", about["Version"], licence.partition(" AND ")[0]


def cff(code: str = "", digest: str = "") -> str:
    """The citation in the Citation File Format 1.2.

    `code` is the address of the source, `digest` the SHA-256 of rows.csv; both may be unknown.
    """
    title, version, licence = _facts()
    lines = [
        "cff-version: 1.2.0",
        'message: "If you use these results, please cite iclbench, and the papers of the models '
        'and tasks."',
        f'title: "{title}"',
        "type: software",
        f'authors:\n  - name: "{AUTHOR}"',
        f"version: {version}",
        f"license: {licence}",
    ]
    if code:
        lines.append(f'repository-code: "{code}"')
    if digest:
        lines += ["identifiers:", "  - type: other", f'    value: "sha256:{digest}"',
                  f'    description: "{BOARDS}"']  # fmt: skip
    return "\n".join(lines) + "\n"


def bibtex(code: str = "", digest: str = "") -> str:
    """The citation as an entry of BibTeX, of the same."""
    title, version, licence = _facts()
    where = f",\n  url     = {{{code}}}" if code else ""
    note = f",\n  note    = {{{BOARDS}: SHA-256 {digest}}}" if digest else ""
    return (
        f"@software{{iclbench,\n  title   = {{{title}}},\n  author  = {{{{{AUTHOR}}}}},\n"
        f"  year    = {{{YEAR}}},\n  version = {{{version}}},\n"
        f"  license = {{{licence}}}{note}{where}\n}}\n"
    )
