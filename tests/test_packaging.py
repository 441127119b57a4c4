"""What pyproject.toml ships: the files of the source distribution, and lists that must agree."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MOST_BYTES = 20e6


def test_the_source_distribution_is_small_and_builds_the_wheel():
    files = {
        Path(file.distribution_path): Path(file.path)
        for file in SdistBuilder(str(ROOT)).recurse_included_files()
    }
    folders = {path.parts[0] for path in files}
    assert not folders & {"leaderboards", ".github", ".ci"}
    assert sum(path.stat().st_size for path in files.values()) < MOST_BYTES
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = [*(f"{name}/__init__.py" for name in wheel), "hatch_build.py", "pyproject.toml"]
    needed += [PYPROJECT["project"]["readme"], *PYPROJECT["project"]["license-files"]]
    assert {Path(name) for name in needed} <= set(files)


def test_every_package_is_in_the_wheel_checked_by_mypy_and_an_entry_point():
    paths = [p for f in ("plugins", "tasks") for p in (ROOT / f).glob("*/__init__.py")]
    packages = {path.parent.name for path in paths}
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(wheel) == sorted(
        ["iclbench", *(path.parent.relative_to(ROOT).as_posix() for path in paths)]
    )
    assert sorted(PYPROJECT["tool"]["mypy"]["packages"]) == sorted({"iclbench", *packages})
    entry_points = PYPROJECT["project"]["entry-points"]["iclbench"].values()
    assert sorted(entry_points) == sorted({"iclbench.builtins", *packages})
