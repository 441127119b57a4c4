"""How to cite the software: CITATION.cff and CITATION.bib, from the installed distribution."""

from __future__ import annotations

from importlib import metadata

AUTHOR = "The iclbench contributors"
#: Of the version that is cited.
YEAR = 2026


def _facts() -> tuple[str, str, str]:
    """The title, version and licence."""
    about = metadata.metadata("iclbench")
    summary = about["Summary"].removeprefix("A plugin-based ")
    keys = ("License-Expression", "License")
    licence = next((about[key] for key in keys if key in about), "Apache-2.0")
    return f"iclbench: a {summary}", about["Version"], licence


def cff(code: str = "") -> str:
    """The citation in the Citation File Format 1.2; `code` is the address of the source, if any."""
    title, version, licence = _facts()
    where = f'repository-code: "{code}"\n' if code else ""
    return (
        "cff-version: 1.2.0\n"
        'message: "If you use these results, please cite iclbench, and the papers of the models '
        'and tasks."\n'
        f'title: "{title}"\ntype: software\nauthors:\n  - name: "{AUTHOR}"\n'
        f"version: {version}\nlicense: {licence}\n{where}"
    )


def bibtex(code: str = "") -> str:
    """The citation as an entry of BibTeX; `code` is the address of the source, if any."""
    title, version, licence = _facts()
    where = f",\n  url     = {{{code}}}" if code else ""
    return (
        f"@software{{iclbench,\n  title   = {{{title}}},\n  author  = {{{{{AUTHOR}}}}},\n"
        f"  year    = {{{YEAR}}},\n  version = {{{version}}},\n"
        f"  license = {{{licence}}}{where}\n}}\n"
    )
