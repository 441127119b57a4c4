"""The command line: what it prints, and that bad input is one clear line with exit code 2."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iclbench import hookimpl
from iclbench.plugins import host
from iclbench_solvers.simple import Zero

TINY = (
    "--task-args", "dim=2,examples=4", "--recipe", "smoke", "--seeds", "2", "--eval-prompts", "64"
)  # fmt: skip


MODEL, TASK = ("--model", "transformer"), ("--task", "least-squares")


def test_the_main_job_prints_a_table_and_leaves_records(cli, tmp_path):
    models = "least-squares-qr,gradient-descent,transformer,baseconv"
    args = ("run", "--model", models, "--task", "least-squares", *TINY, "--out", tmp_path)
    first = cli(*args)
    assert first.code == 0
    assert "| gradient-descent |" in first.out
    assert "training 2 seeds, 20 steps" in first.err
    assert len(list(tmp_path.glob("least-squares/*.json"))) == 4
    shown = cli("leaderboard", "show", "--out", tmp_path)
    assert shown.code == 0
    assert shown.out.strip() == first.out.strip()
    again = cli(*args)
    assert again.out == first.out
    assert "training" not in again.err


def test_several_tasks_have_a_table_each(cli, tmp_path):
    tasks = "least-squares,least-squares-prefixes"
    found = cli("run", "--model", "zero,ridge", "--task", tasks, *TINY, "--out", tmp_path)
    assert found.code == 0
    assert found.out.count("ranked by its median") == 2
    only = cli("leaderboard", "show", "--out", tmp_path, "--task", "least-squares", "--commands")
    assert only.out.count("ranked by its median") == 1
    assert "iclbench run --model zero" in only.out


def test_arguments_can_be_one_model_s(cli, tmp_path):
    args = ("run", "--model", "zero,baseconv,transformer", *TASK, *TINY, "--out", tmp_path,
            "--dry-run")  # fmt: skip
    found = cli(*args, "--model-args", "baseconv.width=8,transformer.width=12")
    assert found.code == 0
    assert '"width": 8' in found.out
    assert '"width": 12' in found.out
    other = cli(*args, "--model-args", "nonesuch.width=8")
    assert other.code == 2
    assert "'nonesuch', which is not run" in other.err
    none = cli(*args, "--model-args", "width=8")
    assert "unknown field 'width'; there are none" in none.err


def test_a_model_that_is_named_twice_is_run_once(cli, tmp_path):
    found = cli("run", "--model", "zero,zero", *TASK, *TINY, "--out", tmp_path)
    assert found.out.count("| zero") == 1


def test_a_late_refusal_does_not_lose_the_others_table(cli, tmp_path):
    """A damaged record among good ones: the others are run and shown, the exit code is 2."""
    args = ("run", "--model", "zero,averaging", *TASK, *TINY, "--out", tmp_path)
    cli(*args)
    (path,) = tmp_path.rglob("zero-*.json")
    path.write_text("{")
    found = cli(*args)
    assert found.code == 2
    assert "| averaging" in found.out


def test_what_nobody_expected_is_one_line(cli, tmp_path, provide):
    class Unsupporting(Zero):
        name = "unsupporting"

        def supports(self, signature, config):
            raise RuntimeError("no luck")

    provide("model", "unsupporting", Unsupporting)
    found = cli("run", "--model", "unsupporting", *TASK, "--out", tmp_path)
    assert found.code == 1
    assert found.err.endswith("RuntimeError: no luck (ICLBENCH_DEBUG=1 shows where)\n")


def test_a_reproduce_command_gives_the_same_record(cli, tmp_path):
    cli("run", "--model", "baseconv", "--task", "least-squares", *TINY, "--out", tmp_path / "a",
        "--model-args", "width=8,mlp=false")  # fmt: skip
    (path,) = tmp_path.glob("a/*/*.json")
    record = json.loads(path.read_text())
    import shlex

    words = shlex.split(record["command"])[1:]
    assert cli(*words, "--out", tmp_path / "b").code == 0
    (again,) = tmp_path.glob("b/*/*.json")
    assert again.name == path.name
    assert json.loads(again.read_text())["metrics"] == record["metrics"]


def test_a_dry_run_says_what_would_run_and_does_nothing(cli, tmp_path):
    args = ("run", "--model", "zero,transformer", "--task", "least-squares", *TINY,
            "--out", tmp_path)  # fmt: skip
    found = cli(*args, "--dry-run")
    assert found.code == 0
    assert "zero on least-squares: solve" in found.out
    assert "transformer on least-squares: train 2 seeds for 20 steps" in found.out
    assert not list(tmp_path.rglob("*.json"))
    cli(*args)
    assert cli(*args, "--dry-run").out.count("done before") == 2


def test_ls_lists_and_describe_describes(cli):
    names = [row["name"] for row in json.loads(cli("ls", "models", "--json").out)]
    assert {"transformer", "baseconv", "least-squares-qr", "zero"} <= set(names)
    assert "least-squares-prefixes" in cli("ls", "tasks").out
    assert {"smoke", "quick"} <= {r["name"] for r in json.loads(cli("ls", "recipes", "--json").out)}
    everything = cli("ls").out
    assert "executor local" in everything
    transformer = cli("describe", "transformer").out
    assert "heads (int) = 1" in transformer
    task = cli("describe", "least-squares").out
    assert "recipe paper" in task
    assert "steps = 1500" in cli("describe", "quick").out
    assert "iclbench 0" in cli("--version").out


def test_verify_says_what_holds(cli, tmp_path):
    cli("run", "--model", "zero,baseconv", "--task", "least-squares", *TINY, "--out", tmp_path)
    found = cli("verify", tmp_path)
    assert found.code == 0
    assert found.out.count("numbers hold\n") == 2
    assert "squared_error mean: recorded" in cli("verify", tmp_path, "--all").out
    assert "tolerance: relative 0.001 in float32" in found.out
    from iclbench.runs.store import read_record

    path = next(p for p in tmp_path.glob("*/*.json") if p.name.startswith("baseconv"))
    record = read_record(path)
    path.write_text(record.model_copy(update={"parameters": 3}).sealed().model_dump_json())
    lied = cli("verify", tmp_path)
    assert lied.code == 1
    assert "parameters: recorded 3, measured" in lied.out
    path.write_text(path.read_text()[:-9])
    assert cli("verify", tmp_path).code == 2


def test_sweep_prints_tables_and_failures(cli, tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(
        """
        [defaults]
        task = "least-squares"
        recipe = "smoke"
        seeds = 1
        eval_prompts = 32
        [[grid]]
        model = ["zero", "averaging"]
        dtype = ["float32", "float64"]
        """
    )
    found = cli("sweep", file, "--out", tmp_path / "r")
    assert found.code == 0
    assert "4 runs: 0 done before, 4 to do" in found.out
    assert found.out.count("ranked by its median") == 2
    assert "4 runs: 4 done before, 0 to do" in cli("sweep", file, "--out", tmp_path / "r").out
    file.write_text(file.read_text().replace('"averaging"', '"averagin"'))
    failing = cli("sweep", file, "--out", tmp_path / "r")
    assert failing.code == 1
    assert "did you mean 'averaging'" in failing.err


def test_a_run_that_fails_does_not_stop_the_next(cli, tmp_path, provide):
    class Failing(Zero):
        name = "failing"

        def weights(self, examples, config):
            raise RuntimeError("no luck")

    provide("model", "failing", Failing)
    found = cli("run", "--model", "failing,zero", "--task", "least-squares", *TINY,
                "--out", tmp_path)  # fmt: skip
    assert found.code == 1
    assert (
        "error: failing on least-squares: RuntimeError('no luck') (ICLBENCH_DEBUG=1 shows where)"
        in found.err
    )
    assert "| zero" in found.out
    assert [p.name.split("-")[0] for p in tmp_path.glob("*/*")] == ["zero", "zero"]


BAD = {
    "unknown model": (("--model", "transfomer", *TASK), "did you mean 'transformer'"),
    "unknown task": ((*MODEL, "--task", "least-sqares"), "did you mean 'least-squares'"),
    "unknown recipe": ((*MODEL, *TASK, "--recipe", "quik"), "did you mean 'quick'"),
    "unknown field": ((*MODEL, *TASK, "--model-args", "layer=2"), "did you mean layers"),
    "unknown task field": ((*MODEL, *TASK, "--task-args", "dims=2"), "did you mean dim"),
    "wrong type": ((*MODEL, *TASK, "--model-args", "layers=two"), "layers: input should be"),
    "no layers": ((*MODEL, *TASK, "--model-args", "layers=0"), "greater than or equal to 1"),
    "heads": ((*MODEL, *TASK, "--model-args", "heads=3"), "3 heads do not divide the width 64"),
    "no device": ((*MODEL, *TASK, "--device", "cuda:99"), "does not exist"),
    "what device": ((*MODEL, *TASK, "--device", "gpu"), "is not a device"),
    "not causal": (
        (*MODEL, "--task", "least-squares-prefixes", "--model-args", "causal=false"),
        "would read the answers",
    ),
    "not answered": (
        ("--model", "nearest-neighbours", *TASK, "--task-args", "target=weights"),
        "not weights",
    ),
    "no checkpoint": ((*MODEL, *TASK, "--weights", "missing.safetensors"), "no such file"),
    "dtype": ((*MODEL, *TASK, "--dtype", "float8"), "float32"),
    "seeds": ((*MODEL, *TASK, "--seeds", "many"), "neither a number nor a list"),
    "no seeds": ((*MODEL, *TASK, "--seeds", "0"), "at least one seed"),
    "arguments": ((*MODEL, *TASK, "--model-args", "layers"), "not of the form key=value"),
    "optimizer": ((*MODEL, *TASK, "--recipe-args", "optimizer=adm"), "did you mean"),
    "nothing": (("--model", ",", *TASK), "must name something"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_usage_is_one_line_and_exit_code_2(cli, tmp_path, case):
    args, message = BAD[case]
    found = cli("run", *args, "--out", tmp_path / "out")
    assert found.code == 2
    assert message in found.err
    assert found.err.count("\n") == 1
    assert "Traceback" not in found.err
    assert not list(tmp_path.rglob("*.json"))


def test_an_output_folder_that_cannot_be_written_is_refused(cli, tmp_path):
    (tmp_path / "file").write_text("in the way")
    found = cli("run", "--model", "zero", *TASK, "--out", tmp_path / "file" / "results")
    assert found.code == 2
    assert "can't be written" in found.err


def test_a_checkpoint_that_does_not_fit_is_refused(cli, tmp_path):
    cli("run", "--model", "baseconv", *TASK, *TINY, "--out", tmp_path)
    (weights,) = tmp_path.rglob("*.weights.safetensors")
    found = cli("run", "--model", "baseconv", *TASK, "--weights", weights, "--out", tmp_path)
    assert found.code == 2
    assert "does not fit" in found.err
    other = cli("run", *MODEL, *TASK, "--init", weights, "--out", tmp_path)
    assert other.code == 2
    assert "weights of baseconv" in other.err


@pytest.mark.parametrize("damage", ["truncated", "edited"])
def test_a_damaged_record_is_refused_by_every_verb(cli, tmp_path, damage):
    run = ("run", "--model", "zero", *TASK, *TINY, "--out", tmp_path)
    cli(*run)
    (path,) = tmp_path.rglob("*.json")
    text = path.read_text()
    bad = text[:-30] if damage == "truncated" else text.replace('"mean": ', '"mean": 1')
    path.write_text(bad)
    for args in (run, ("verify", path), ("leaderboard", "show", "--out", tmp_path)):
        found = cli(*args)
        assert found.code == 2, args
        assert damage in found.err
        assert "Traceback" not in found.err
    assert path.read_text() == bad


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("leaderboard", "show", "--out", "missing"), "no folder"),
        (("leaderboard", "show", "--out", "."), "no records"),
        (("verify", "missing.json"), "can't be read"),
        (("describe", "transfomer"), "did you mean 'transformer'"),
        (("sweep", "missing.toml"), "missing.toml"),
        (("ls", "nonsense"), "models"),
        (("leaderboard", "show", "--format", "githb"), "did you mean 'github'"),
    ],
)
def test_other_verbs_refuse_bad_input(cli, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    found = cli(*args)
    assert found.code == 2
    assert message in found.err
    assert "Traceback" not in found.err


def test_strict_fails_when_an_observer_was_dropped(cli, tmp_path):
    class Raising:
        @hookimpl
        def iclbench_run_started(self, spec):
            raise RuntimeError("no luck")

    observer = Raising()
    args = ("run", "--model", "zero", *TASK, *TINY, "--out", tmp_path)
    try:
        host().observe(observer, "raising")
        found = cli(*args, "--strict")
    finally:
        host().forget(observer)
        host().problems.clear()
    assert found.code == 2
    assert "no luck" in found.err
    assert "| zero" in found.out


def test_what_comes_later_is_absent(cli):
    text = cli("--help").out
    for verb in ("run", "sweep", "ls", "describe", "plugins", "leaderboard", "verify", "submit"):
        assert f" {verb} " in text
    for verb in ("new", "check"):
        assert f" {verb} " not in text
    assert "slurm" not in cli("sweep", "--help").out


def test_a_killed_run_continues_to_the_same_bits(tmp_path):
    """SIGKILL between two steps; the resumed weights are those of a run that was left alone."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable, "-m", "iclbench", "run", "--model", "transformer", *TASK, *TINY,
        "--recipe-args", "steps=400,chunk=4", "--checkpoint-seconds", "0",
    ]  # fmt: skip

    def weights(folder: Path) -> bytes:
        (path,) = folder.rglob("*.weights.safetensors")
        return path.read_bytes()

    straight, cut = tmp_path / "straight", tmp_path / "cut"
    subprocess.run([*command, "--out", straight], check=True, env=environment, capture_output=True)
    process = subprocess.Popen(
        [*command, "--out", cut], env=environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(cut.glob("checkpoints/*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not list(cut.rglob("*.json"))
    (checkpoint,) = cut.glob("checkpoints/*.safetensors")
    from iclbench.training.checkpoints import Checkpoint

    assert 0 < Checkpoint.load(checkpoint).values["step"] < 400
    subprocess.run([*command, "--out", cut], check=True, env=environment, capture_output=True)
    assert weights(cut) == weights(straight)
    assert not list(cut.glob("checkpoints/*"))


def test_a_killed_sweep_continues(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(
        f"""
        out = "{tmp_path / "results"}"
        [defaults]
        task = "least-squares"
        recipe = "smoke"
        seeds = 1
        eval_prompts = 32
        [[grid]]
        model = ["zero", "averaging"]
        [[grid]]
        model = "baseconv"
        recipe_args = {{ steps = 100000 }}
        """
    )
    command = [sys.executable, "-m", "iclbench", "sweep", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.rglob("*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.json")}
    assert len(before) == 2
    file.write_text(file.read_text().replace("100000", "5"))
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "3 runs: 2 done before, 1 to do" in found.stdout
    assert all(p.read_bytes() == content for p, content in before.items())


def test_show_prints_metrics_floor_and_curves(cli, tmp_path):
    arguments = ("--model", "gradient-descent", "--task", "least-squares-prefixes")
    cli("run", *arguments, "--eval-prompts", 32, "--out", tmp_path)
    shown = cli("show", tmp_path)
    assert shown.code == 0
    assert (
        "gradient-descent on least-squares-prefixes v1 · solver · float32 · 32 prompts" in shown.out
    )
    assert "| floor squared_error" in shown.out
    assert "prefix_error by prefix" in shown.out
    assert sum(line.startswith("| 20 ") for line in shown.out.splitlines()) == 1
    assert cli("run", "--model", "class-frequency", "--task", "categorical", "--metrics",
               "calibration", "--eval-prompts", 32, "--out", tmp_path / "c").code == 0  # fmt: skip
    analysed = cli("show", tmp_path / "c").out.splitlines()
    (line,) = [line for line in analysed if line.startswith("| expected_calibration_error")]
    assert 0 < float(line.split("|")[2]) < 1
    nothing = cli("show", tmp_path / "elsewhere.json")
    assert nothing.code == 2
    assert nothing.err.count("\n") == 1
