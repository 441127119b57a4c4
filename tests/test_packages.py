"""What the package consists of: every plugin and task, and in the sdist no published record."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: The most bytes of the source distribution's files.
MOST_BYTES = 40_000_000


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_wheel_and_mypy_know_every_plugin_and_task(project):
    tool = project["tool"]
    folders = {path.parent for place in ("plugins", "tasks")
               for path in ROOT.glob(f"{place}/iclbench_*/__init__.py")}  # fmt: skip
    packages = {f"{folder.parent.name}/{folder.name}" for folder in folders}
    assert len(packages) > 20
    assert {"iclbench", *packages} == set(tool["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert {folder.name for folder in folders} <= set(tool["mypy"]["packages"])


def test_the_source_distribution_has_no_published_records():
    sdist = pytest.importorskip("hatchling.builders.sdist")
    files = list(sdist.SdistBuilder(str(ROOT)).recurse_included_files())
    paths = {Path(file.relative_path).as_posix() for file in files}
    assert {"pyproject.toml", "hatch_build.py", "iclbench/__init__.py"} <= paths
    assert not [path for path in paths if path.startswith(("leaderboards/", ".github/", ".ci/"))]
    assert sum(Path(file.path).stat().st_size for file in files) < MOST_BYTES
