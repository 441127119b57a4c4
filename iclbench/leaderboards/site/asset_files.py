"""The style and the scripts of a site: the package's files, and their names in the site."""

from __future__ import annotations

import hashlib
from importlib import resources

#: What is copied from the package's assets, by the name that templates use.
SCRIPTS = {
    **{name: f"{name}.js" for name in ("site", "plot", "home", "table", "export", "paired",
                                       "compare", "clipboard", "live", "sort")},
    "uplot": "vendor/uplot.min.js",
}  # fmt: skip
#: The style sheet, and that of the plotting library, which are one file of the site.
STYLES = ("site.css", "pages.css", "vendor/uplot.css")
LICENSE = "assets/uplot.LICENSE"


def asset_files() -> tuple[dict[str, str], dict[str, bytes]]:
    """The path in the site of each script and of the style, by name, and the content of all files.

    A path holds a digest of its content.
    """
    package = resources.files("iclbench.leaderboards.site") / "assets"
    contents = {name: package.joinpath(file).read_bytes() for name, file in SCRIPTS.items()}
    names = {name: _with_digest(name, data, "js") for name, data in contents.items()}
    contents["style"] = b"\n".join(package.joinpath(file).read_bytes() for file in STYLES)
    names["style"] = _with_digest("site", contents["style"], "css")
    files = {names[name]: data for name, data in contents.items()}
    files[LICENSE] = (package / "vendor" / "uplot.LICENSE").read_bytes()
    return names, files


def _with_digest(stem: str, data: bytes, ending: str) -> str:
    return f"assets/{stem}.{hashlib.sha256(data).hexdigest()[:8]}.{ending}"
