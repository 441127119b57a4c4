"""The speed benchmark runs, and its comparison notices slowdowns. No time is asserted."""

from __future__ import annotations

import copy
import dataclasses
import importlib.util
import json
import sys
import types

import pytest
import torch

from benchmarks.__main__ import in_order
from benchmarks.compare import compare
from benchmarks.compare import main as compare_main
from benchmarks.configurations import CONFIGURATIONS, Configuration
from benchmarks.engine import EngineLoop, Stopwatch, plan_of
from benchmarks.report import headline, table, targets
from benchmarks.timing import operations, stage_times
from iclbench.training.gradients.threaded import Threaded
from iclbench_transformer import fast

ROW = {
    "name": "a model",
    "batch": 8,
    "peak_flops": {"wall": 1e9, "cpu": 1e9},
    "loops": [
        {
            "name": name,
            "replicas": 1,
            "wall_seconds": [seconds] * 5,
            "cpu_seconds": [seconds] * 5,
            "flops": 10**6,
            "peak_memory": None,
            "stages": {"data": 1e-3},
            "overhead": None,
            "note": None,
        }
        for name, seconds in (("plain loop", 0.02), ("iclbench, R = 1", 0.01))
    ],
}
FILE = {
    "device": "a CPU",
    "cores": 2,
    "threads": 1,
    "versions": {"torch": "2"},
    "dtype": "float32",
    "kind": "cpu",
    "clock": "cpu",
    "configurations": [ROW],
}


def test_the_seconds_of_a_stage_are_the_median(monkeypatch):
    readings = iter([99.0, 1.0, 2.0])

    class Clock:
        def __init__(self, device):
            pass

        def read(self):
            seconds = next(readings)
            return seconds, seconds

    monkeypatch.setattr("benchmarks.timing.Clock", Clock)
    loop = types.SimpleNamespace(replicas=1, stages={"data": lambda value: value})
    assert stage_times(loop, 2, "cpu") == {"data": 1.5}


def slowed(factor):
    content = copy.deepcopy(FILE)
    loop = content["configurations"][0]["loops"][1]
    loop["cpu_seconds"] = [factor * s for s in loop["cpu_seconds"]]
    return content


def paper_loop(configuration):
    """A loop that calls the paper's module: where a hook is set, no faster form is used."""
    loop = EngineLoop(configuration, 1, "cpu")
    loop.training.replicas.template.register_forward_hook(lambda *_: None)
    program = loop.training.choice.program
    program = Threaded(program.replicas, program.loss, program.context)
    loop.training.choice = dataclasses.replace(loop.training.choice, program=program)
    return loop


def test_every_configuration_is_a_run():
    for configuration in CONFIGURATIONS:
        plan = plan_of(configuration, 2)
        assert plan.spec.seeds == (0, 1)
        assert plan.recipe.batch == configuration.batch


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.1, 0), (1.3, 1), (0.5, 0)])
def test_slowdown_beyond_the_margin_fails(factor, code):
    text, exit_code = compare(FILE, slowed(factor), 0.15)
    assert exit_code == code
    assert ("slower" in text) == bool(code)


@pytest.mark.parametrize("change", [{"device": "another"}, {"threads": 2}, {"clock": "wall"}])
def test_files_timed_in_different_ways_are_not_compared(change):
    with pytest.raises(ValueError, match=f"two values of {next(iter(change))}"):
        compare(FILE, {**FILE, **change}, 0.15)


def test_files_without_a_common_loop_are_not_compared(tmp_path, monkeypatch):
    assert compare(FILE, {**FILE, "configurations": []}, 0.15)[1] == 2
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    paths[0].write_text(json.dumps(FILE))
    paths[1].write_text(json.dumps(slowed(2.0)))
    monkeypatch.setattr(sys, "argv", ["compare", *map(str, paths)])
    with pytest.raises(SystemExit) as end:
        compare_main()
    assert end.value.code == 1


def test_a_loop_that_failed_later_is_no_small_change():
    lost = copy.deepcopy(FILE)
    lost["configurations"][0]["loops"].pop()
    with pytest.raises(ValueError, match=r"the second file lacks .*iclbench, R = 1"):
        compare(FILE, lost, 0.15)
    assert compare(lost, FILE, 0.15)[1] == 0


@pytest.mark.parametrize("text", ["[]", "{}", "no", '{"configurations": 3}'])
def test_a_file_of_something_else_is_no_slowdown(tmp_path, monkeypatch, capsys, text):
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    paths[0].write_text(json.dumps(FILE))
    paths[1].write_text(text)
    monkeypatch.setattr(sys, "argv", ["compare", *map(str, paths)])
    with pytest.raises(SystemExit) as end:
        compare_main()
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("benchmarks.compare: ")


def test_rows_of_a_configuration_that_is_no_more_come_last():
    known = [{"name": configuration.name} for configuration in CONFIGURATIONS[:2]]
    assert in_order([{"name": "gone"}, *reversed(known)]) == [*known, {"name": "gone"}]


def test_table_has_speeds_ratios_and_the_fraction_of_peak():
    text = table(FILE, ROW)
    assert "100" in text
    assert "2.00 (2.00–2.00)" in text
    assert "0.10" in text
    assert "a CPU, 2 cores, 1 thread" in headline(FILE)


@pytest.mark.parametrize(("kind", "expected"), [("cpu", "missed by 20%"), ("cuda", "met")])
def test_targets_depend_on_the_kind_of_device(kind, expected):
    times = {"plain loop": 0.4, "iclbench, R = 64": 0.1, "iclbench, R = 256": 0.001}
    loops = [{**ROW["loops"][0], "name": name, "cpu_seconds": [s] * 5, "wall_seconds": [s] * 5}
             for name, s in times.items()]  # fmt: skip
    row = {**ROW, "name": "linear attention 1 × 16", "loops": loops}
    lines = targets({**FILE, "kind": kind, "configurations": [row]}).splitlines()
    replicas = "R = 64" if kind == "cpu" else "R = 256"
    (line,) = (line for line in lines if f"linear attention at {replicas}" in line)
    assert expected in line


def test_operations_are_counted_alike_by_fused_operators_and_one_by_one(monkeypatch):
    configuration = Configuration(
        "a transformer", "transformer", "multiply", {"layers": 1, "width": 64}, 64
    )
    monkeypatch.setattr(fast, "WORTH_MERGING", 10**9)
    one = operations(EngineLoop(configuration, 1, "cpu"))
    plain = operations(paper_loop(configuration))
    assert 1 <= one / plain < 1.05  # the kernel multiplies QKᵀ once more
    monkeypatch.setattr(fast, "WORTH_MERGING", 0)
    assert operations(EngineLoop(configuration, 1, "cpu")) < 0.95 * plain


def test_operations_are_counted_alike_of_what_is_compiled(monkeypatch):
    configuration = CONFIGURATIONS[5]
    expected = operations(EngineLoop(configuration, 2, "cpu"))
    monkeypatch.setattr(torch, "compile", lambda function: function)
    loop = EngineLoop(configuration, 2, "cpu", engine="compiled")
    program = loop.training.choice.program
    program.compiled = None  # which can't be called
    with loop.in_turn():
        assert operations(loop) == expected
    assert program.compiled is None


@pytest.mark.parametrize("engine", ["threaded", "vmapped"])
def test_the_engine_s_share_is_the_rest_of_what_its_program_calls(engine, monkeypatch):
    configuration = CONFIGURATIONS[5]
    loop = EngineLoop(configuration, 2, "cpu", engine=engine)
    assert loop.training.choice.program.name == engine
    watches = []

    class Watch(Stopwatch):
        def __init__(self):
            super().__init__()
            watches.append(self)

    monkeypatch.setattr("benchmarks.engine.Stopwatch", Watch)
    steps = 2 * configuration.chunk
    share = loop.overhead(steps)
    *parts, whole = watches
    assert len(parts) == 4
    assert all(part.calls > 0 and part.seconds > 0 for part in parts)
    assert parts[-1].calls == steps
    assert 0 < sum(part.seconds for part in parts) < whole.seconds
    assert 0 < share < 1


def test_a_part_that_the_engine_never_calls_is_no_share_of_it(monkeypatch):
    loop = EngineLoop(CONFIGURATIONS[5], 1, "cpu")
    monkeypatch.setattr(loop, "advance", lambda steps: None)
    with pytest.raises(RuntimeError, match="data was not timed"):
        loop.overhead(20)


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path, monkeypatch):
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed (the extra bench)")
    from benchmarks.__main__ import main

    out = tmp_path / "speed.json"
    monkeypatch.setattr(
        sys, "argv", ["benchmarks", "--quick", "--json", str(out), "--only", "transformer 2", "lsa"]
    )
    main()
    content = json.loads(out.read_text())
    names = [row["name"] for row in content["configurations"]]
    assert names == ["transformer 2 × 64", "lsa, 1 layer"]
    loops = content["configurations"][0]["loops"]
    assert [loop["name"] for loop in loops[:2]] == ["GPT2Model loop", "plain loop"]
    assert all(loop["flops"] > 0 and min(loop["cpu_seconds"]) > 0 for loop in loops)
