"""Distributions installed for one test: modules, and the metadata that names them."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

PROLOGUE = "from iclbench import Entry, hookimpl\n"


def write_distribution(
    folder: Path, name: str, points: Mapping[str, str], version: str = "1.0", **modules: str
) -> None:
    """Install `modules` (name=source) into a folder of the path, with these entry points."""
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(PROLOGUE + dedent(source), encoding="utf-8")
    information = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8"
    )
    lines = [f"{point} = {target}\n" for point, target in points.items()]
    (information / "entry_points.txt").write_text("[iclbench]\n" + "".join(lines), "utf-8")
    importlib.invalidate_caches()


def write_plugin(folder: Path, name: str, source: str, version: str = "1.0") -> None:
    """Install a plugin of one module: the distribution iclbench-NAME, the entry point NAME."""
    module = f"{name}_plugin"
    write_distribution(folder, f"iclbench-{name}", {name: module}, version, **{module: source})


def install_project(folder: Path, project: Path) -> str:
    """Install what a project's pyproject.toml describes into a folder of the path; its name.

    The project's own folder must be on the path too, as for an editable installation.
    """
    about = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    write_distribution(folder, about["name"], about["entry-points"]["iclbench"], about["version"])
    return str(about["name"])
