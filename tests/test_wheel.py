"""The wheel works alone: in an environment that has its dependencies and nothing of this clone."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

SWEEP = """
[defaults]
task = "least-squares"
task_args = { dim = 2, examples = 4 }
eval_prompts = 16
[[grid]]
model = ["zero", "averaging"]
"""


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Runs the wheel's command in a clean environment and an empty folder."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    hosted = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "lab/iclbench"}
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, env={**os.environ, **hosted})
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=False, symlinks=os.name != "nt")
    names = {"base": str(folder / "env"), "platbase": str(folder / "env")}
    site = Path(sysconfig.get_path("purelib", "venv", vars=names))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", str(site), str(wheel)], check=True, capture_output=True)
    # The dependencies are those of the environment that runs the tests. As a line of a .pth file it
    # comes last, and the editable installation that it may hold is not followed.
    folders = [sysconfig.get_path("purelib"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    outside = [f for f in folders if f and not Path(f).resolve().is_relative_to(ROOT / "iclbench")]
    ours = {ROOT, ROOT / "plugins", ROOT / "tasks"}
    lines = [f for f in outside if Path(f).resolve() not in ours]
    (site / "dependencies.pth").write_text("\n".join(lines) + "\n", "utf-8")
    scripts = Path(sysconfig.get_path("scripts", "venv", vars=names))
    left_out = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {k: v for k, v in os.environ.items() if k not in left_out}
    environment |= {"PYTHONUTF8": "1", "ICLBENCH_CACHE": str(folder / "cache")}
    work = folder / "work"
    work.mkdir()

    def run(*arguments: str) -> str:
        words = [str(scripts / "python"), "-m", "iclbench", *arguments]
        done = subprocess.run(
            words, cwd=work, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.folder = work
    run.site = site
    return run


@pytest.mark.slow
def test_the_wheel_names_the_repository_that_built_it(clean):
    (metadata,) = clean.site.glob("iclbench-*.dist-info/METADATA")
    lines = metadata.read_text("utf-8").splitlines()
    assert "Project-URL: Repository, https://git.example/lab/iclbench" in lines
    linked = [line.split("/blob/main/")[1] for line in lines if "/blob/main/" in line]
    assert len(linked) == 3
    assert all((ROOT / page).is_file() for page in linked)


@pytest.mark.slow
def test_the_wheel_has_what_its_commands_need(clean):
    assert clean("--version").startswith("iclbench ")
    listed = clean("plugins", "--columns", "plugin,state,module", "--strict")
    assert "broken" not in listed
    # The features of the emoji and the tales come with the wheel.
    clean("run", "--model", "nearest-class-mean", "--task", "imagenet", "--eval-prompts", "16",
          "--task-args", "images=emoji")  # fmt: skip
    (clean.folder / "tiny.toml").write_text(SWEEP)
    assert "2 runs: 0 skipped, 2 to run" in clean("sweep", "tiny.toml", "--out", "results")
    # The studies of its plugins are sweeps too.
    assert "least-squares/prefixes" in clean("leaderboard", "figure")
    assert " averaging " in clean("leaderboard", "show")


@pytest.mark.slow
def test_the_wheel_makes_boards_and_a_site(clean):
    clean("run", "--model", "zero,ridge", "--task", "least-squares", "--eval-prompts", "16",
          "--task-args", "dim=2,examples=4", "--out", "boards/records")  # fmt: skip
    clean("leaderboard", "build", "boards", "--no-parquet")
    assert "| ridge" in (clean.folder / "boards/tasks/least-squares.md").read_text("utf-8")
    clean("leaderboard", "site", "site", "--from", "boards")
    page = (clean.folder / "site/index.html").read_text("utf-8")
    assert "least-squares" in page


@pytest.mark.slow
def test_it_is_the_wheel_that_runs(clean):
    (package,) = clean.site.glob("iclbench-*.dist-info")
    metadata = (package / "METADATA").read_text("utf-8")
    assert "Classifier: Programming Language :: Python :: 3.11" in metadata
    assert "License-Expression: Apache-2.0 AND MIT\n" in metadata
    licenses = package / "licenses"
    for name in ("fashion-mnist", "emoji"):
        assert (licenses / "tasks/iclbench_imagenet" / name / "LICENSE").is_file()
    where = clean("plugins", "--format", "json")
    assert str(ROOT) not in where
    assert (clean.site / "iclbench" / "__init__.py").is_file()
