"""Every part of `make gpu` works on a CPU at toy size, and goes on from what it left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from benchmarks import ROOT, gpu, gpu_parts, wheels
from benchmarks.configurations import CONFIGURATIONS
from benchmarks.gpu import main, pack, unpack
from benchmarks.gpu_agreement import was_captured
from benchmarks.gpu_parts import ROWS
from benchmarks.processes import ended_in_time, stopped_in_time
from iclbench.api.config import parse_config
from iclbench.api.spec import RunSpec
from iclbench.runs.plan import resolve

GUIDE = (ROOT / "docs" / "gpu.md").read_text("utf-8")
#: Distributions that only some versions of the others need.
NOT_EVERYWHERE = {"tomli", "exceptiongroup"}
#: Refuses to import any distribution that the machine would not have, and collects the tests.
BARE = """
import importlib.abc, sys
from importlib.metadata import packages_distributions
from packaging.utils import canonicalize_name
from benchmarks import wheels
there = {*wheels.closure(wheels.GIVEN), *wheels.missing(), "iclbench"}
lacking = {
    package
    for package, names in packages_distributions().items()
    if not {canonicalize_name(name) for name in names} & there
} - {"_pytest", "pip", "setuptools"}

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in lacking:
            raise ModuleNotFoundError(f"{name} is not on the machine", name=name)

sys.meta_path.insert(0, Refuse())
import pytest
import benchmarks.__main__, benchmarks.gpu_parts, benchmarks.loops, benchmarks.reference
import iclbench.cli.run, iclbench.leaderboards.submission
options = ["-q", "--collect-only", "-m", "gpu", "-W", "default", "-p", "no:cacheprovider"]
sys.exit(pytest.main([*options, *sys.argv[1:]]))
"""


@pytest.fixture
def part(tmp_path, monkeypatch):
    def run(number, *options, minutes=9.0):
        words = ["gpu", number, "--device", "cpu", "--toy", "--minutes", minutes,
                 "--out", tmp_path / "out", "--state", tmp_path / "out", *options]  # fmt: skip
        monkeypatch.setattr(sys, "argv", [str(word) for word in words])
        with pytest.raises(SystemExit) as end:
            main()
        assert len(list((tmp_path / "out").iterdir())) <= 8
        return end.value.code

    run.out = tmp_path / "out"
    return run


@pytest.mark.parametrize("model", ROWS)
def test_the_rows_of_part_5_can_be_run(model):
    request = {"model": model, "task": "least-squares", "budget": "gpu-1h"}
    assert resolve(parse_config(RunSpec, request, "run")).spec.id


def test_a_graph_that_is_asked_for_on_a_gpu_must_be_captured():
    assert was_captured("graph", "vmapped graph", "cuda")
    assert not was_captured("graph", "vmapped", "cuda")
    assert was_captured("compiled", "compiled graph", "cuda")
    assert not was_captured("compiled", "vmapped graph", "cuda")
    assert was_captured("graph", "vmapped", "cpu")
    assert was_captured("plain", "plain", "cuda")


@pytest.mark.slow
def test_part_0_takes_a_little_of_each(part):
    pytest.importorskip("transformers")
    assert part(0) == 0
    rows = json.loads((part.out / "part-0-agreement.json").read_text())["rows"]
    assert {row["asked"] for row in rows} == {"graph"}
    assert (part.out / "part-0-many.json").exists()
    assert (part.out / "part-0-speed.json").exists()


@pytest.mark.slow
def test_part_1_runs_the_tests_for_gpus(part):
    assert part(1) == 0
    text = (part.out / "part-1-tests.txt").read_text()
    assert "skipped" in text.splitlines()[-1]


@pytest.mark.slow
def test_part_2_compares_every_engine_and_goes_on(part):
    assert part(2) == 0
    path = part.out / "part-2-agreement.json"
    rows = json.loads(path.read_text())["rows"]
    assert {row["asked"] for row in rows} == {"auto", "vmapped", "threaded", "compiled", "graph"}
    assert all(row["agrees"] for row in rows)
    before = path.read_bytes()
    assert part(2) == 0
    assert path.read_bytes() == before


@pytest.mark.slow
def test_part_3_times_the_loops(part):
    pytest.importorskip("transformers")
    assert part(3) == 0
    (row,) = json.loads((part.out / "part-3-speed.json").read_text())["configurations"]
    assert row["name"] == "lsa, 1 layer"


def test_part_3_goes_on_after_a_failure_and_begins_anew_on_another_machine(part, monkeypatch):
    names = ["lsa, 1 layer", "transformer 2 × 64"]
    chosen = [c for c in CONFIGURATIONS if c.name in names]
    called = []
    monkeypatch.setattr(gpu_parts, "CONFIGURATIONS", chosen)
    monkeypatch.setattr(
        gpu_parts, "ended_in_time", lambda words, seconds: called.append(words[-1]) or 1
    )
    folder = part.out.parent / "call"
    folder.mkdir()
    call = gpu.Slice("cpu", False, folder, time.monotonic() + 60)
    elsewhere = {"device": "another", "configurations": [{"name": names[0]}]}
    call.write("speed.json", elsewhere)
    assert gpu_parts.speed(call) == 1
    assert called == [c.name for c in chosen]


def test_a_short_call_runs_the_tests_once_and_gives_no_configuration_up(tmp_path, monkeypatch):
    """Its minutes are few: the next one goes on with what this one had no time for."""
    called = []
    stopped = lambda words, seconds, *_, **files: called.append(seconds) or (2, True)  # noqa: E731
    monkeypatch.setattr(gpu_parts, "stopped_in_time", stopped)
    monkeypatch.setattr(gpu_parts, "ended_in_time", lambda *_: None)
    monkeypatch.setattr(gpu_parts, "commit", lambda: "abc")
    call = gpu.Slice("cpu", False, tmp_path, time.monotonic() + 600, short=True)
    assert [gpu_parts.tests(call), gpu_parts.tests(call)] == [1, 1]
    assert called == [gpu_parts.TESTING - gpu_parts.SAVING]
    assert "ran out of time" in (tmp_path / "tests.txt").read_text()
    monkeypatch.setattr(gpu_parts, "commit", lambda: "abc-dirty")  # perhaps mended since
    assert (gpu_parts.tests(call), len(called)) == (1, 2)
    assert gpu_parts.speed(call) == gpu_parts.NOT_YET
    assert call.read("too_slow.json") is None


def test_a_command_that_is_interrupted_says_what_it_has(tmp_path):
    code = (
        "import time\n"
        "try:\n    print('begun', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('so far'); raise SystemExit(2)"
    )
    with (tmp_path / "log").open("w") as log:
        ended = stopped_in_time([sys.executable, "-c", code], 5.0, signal.SIGINT, stdout=log)
    assert ended == (2, True)
    assert (tmp_path / "log").read_text() == "begun\nso far\n"


def test_what_a_command_started_ends_with_it(tmp_path):
    """A worker that lived on would hold the device's memory, and this process's output."""
    pid = tmp_path / "pid"
    worker = "import time; time.sleep(60)"
    code = (
        "import pathlib, subprocess, sys, time; "
        f"p = subprocess.Popen([sys.executable, '-c', {worker!r}]); "
        f"pathlib.Path({str(pid)!r}).write_text(str(p.pid)); time.sleep(60)"
    )
    assert ended_in_time([sys.executable, "-c", code], 15.0) is None
    for _ in range(50):
        if not Path(f"/proc/{pid.read_text()}").exists() or _is_zombie(pid.read_text()):
            break
        time.sleep(0.1)
    else:
        pytest.fail("the worker lives")
    assert ended_in_time([sys.executable, "-c", "raise SystemExit(4)"], 30.0) == 4


def _is_zombie(pid):
    with contextlib.suppress(OSError):
        return "Z (zombie)" in Path(f"/proc/{pid}/status").read_text()
    return True


def test_part_3_leaves_out_what_a_whole_call_is_too_short_for(part, monkeypatch):
    monkeypatch.setattr(gpu_parts, "ended_in_time", lambda words, seconds: None)
    assert part(3) == 3
    assert part(3) == 1
    assert json.loads((part.out / "part-3-too_slow.json").read_text()) == ["lsa, 1 layer"]


@pytest.mark.slow
def test_part_4_trains_many_models_as_one(part):
    assert part(4) == 0
    content = json.loads((part.out / "part-4-many.json").read_text())
    assert content["models"] == 8
    assert content["ratio"] > 0


@pytest.mark.slow
def test_part_5_goes_on_from_its_checkpoint(part, monkeypatch):
    monkeypatch.setattr(gpu, "PACKING", 0.0)
    options = ("--seeds", 1, "--budget", "12s")
    codes = [part(5, *options, minutes=0.1)]
    while codes[-1] == 3 and len(codes) < 30:  # a slice may be too short for a busy machine
        codes.append(part(5, *options, minutes=0.1))
    assert codes[-1] == 0
    assert codes[0] == 3


def test_what_a_part_leaves_is_put_back(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "MOST_BYTES", 100)
    work, back = tmp_path / "a" / "work", tmp_path / "b" / "work"
    (work / "results").mkdir(parents=True)
    back.mkdir(parents=True)
    (work / "results" / "x.bin").write_bytes(bytes(range(256)))
    (work / "agreement.json").write_text("{}")
    pack(work, 2, tmp_path / "out")
    assert len(list((tmp_path / "out").glob("part-2.tar.gz.*"))) > 1
    assert (tmp_path / "out" / "part-2-agreement.json").exists()
    unpack(tmp_path / "out", 2, back)
    assert (back / "results" / "x.bin").read_bytes() == bytes(range(256))
    monkeypatch.setattr(gpu, "MOST_BYTES", 20)
    with pytest.raises(SystemExit, match="more than 8"):
        pack(work, 2, tmp_path / "out")


def test_the_wheels_are_those_that_the_machine_lacks(tmp_path):
    missing = set(wheels.missing())
    assert {"pydantic", "pydantic-core", "typer", "python-flint", "pytest", "hypothesis"} <= missing
    assert not missing & {"torch", "numpy", "sympy", "pandas", "jinja2", "plotly", "iclbench"}
    whole, bare = tmp_path / "whole.whl", tmp_path / "bare.whl"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("iclbench/__init__.py", "")
        archive.writestr("iclbench-1.dist-info/METADATA", "Name: iclbench\n")
        archive.writestr("iclbench-1.dist-info/RECORD", "")
    wheels.keep_metadata(whole, bare)
    names = zipfile.ZipFile(bare).namelist()
    assert names == ["iclbench-1.dist-info/METADATA", "iclbench-1.dist-info/RECORD"]


def test_wheels_of_another_version_or_of_what_is_not_missing_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(wheels, "missing", lambda: ["pydantic-core", "rich"])
    versions = {"pydantic-core": "2.1", "rich": "13.7"}
    monkeypatch.setattr(wheels.metadata, "version", versions.__getitem__)
    names = ["iclbench-0.1.0-py3-none-any.whl", "pydantic_core-2.0-cp312-none-any.whl",
             "pydantic_core-2.1-cp312-none-any.whl", "old-1.0-py3-none-any.whl"]  # fmt: skip
    for name in names:
        (tmp_path / name).touch()
    wheels.remove_earlier(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [names[2]]


def test_a_part_writes_to_out_or_else_to_the_state(tmp_path, monkeypatch):
    folders = []
    monkeypatch.setattr(gpu, "run_part", lambda part, make, state, out: folders.append(out) or 0)
    for environment, words, expected in (
        ("", (), "state"), ("out", (), "out"), ("out", ("--out", "named"), "named"),
    ):  # fmt: skip
        monkeypatch.setenv("OUT", str(tmp_path / environment) if environment else "")
        options = ["--state", str(tmp_path / "state"), *words]
        monkeypatch.setattr("sys.argv", ["gpu", "1", *options])
        with pytest.raises(SystemExit):
            main()
        assert folders[-1].name == expected


def test_the_wheels_fit_beside_the_tree():
    """`make gpu-wheels` renews the sizes, which it must after a change of the dependencies."""
    sizes = json.loads(wheels.SIZES.read_text("utf-8"))
    assert {*wheels.missing(), "iclbench"} - NOT_EVERYWHERE <= {*sizes}
    assert sum(sizes.values()) + wheels.tree_bytes() < wheels.MOST_BYTES
    left_out = [f"'!/{name}/'" for name in wheels.LEFT_OUT]
    assert " ".join(["git sparse-checkout set --no-cone '/*'", *left_out]) in GUIDE


@pytest.mark.slow
def test_the_parts_need_nothing_that_the_machine_lacks():
    """In an environment of its own, what isn't brought along can't be imported."""
    marked = [p for p in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.gpu" in p.read_text()]
    files = [str(path.relative_to(ROOT)) for path in marked]
    words = [sys.executable, "-c", BARE, *files]
    folders = os.pathsep.join(str(ROOT / name) for name in (".", "plugins", "tasks"))
    # Plugins of this environment need more than the machine has.
    no_plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HYPOTHESIS_NO_PLUGINS": "1"}
    environment = {**os.environ, "PYTHONPATH": folders, **no_plugins}
    done = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
