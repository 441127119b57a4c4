"""The progress display: what it says, and where."""

from __future__ import annotations

import io
import json
import math
import sys
import types

import pytest
from rich.console import Console

from iclbench import run
from iclbench.api.config import parse_config
from iclbench.display import views
from iclbench.display.progress import ProgressDisplay, progress_of_jobs
from iclbench.display.views import NotebookView, PlainView, State, TerminalView, duration
from iclbench.runs.settings import Settings
from iclbench.sweeps.executors.local import Local
from iclbench.sweeps.files import SweepFile
from iclbench.sweeps.jobs import job_of, run_job
from iclbench.sweeps.sweep import sweep

TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke",
        "seeds": 2, "eval_prompts": 64}  # fmt: skip


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the test moves."""
    now = [100.0]
    monkeypatch.setattr(views, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_state_says_place_phase_loss_and_time_left(clock):
    state = State("transformer on least-squares", 2, 5, "preparing the training", steps=1000)
    assert state.title == "2 of 5: transformer on least-squares"
    clock[0] += 3
    assert state.details == "preparing the training · 3 s"
    state.advance(100, 1000, [4.0, 2.0, 3.0])
    assert state.details == "training 100 of 1,000 steps · loss 3.00e+00 · 3 s"
    clock[0] += 10
    state.advance(200, 1000, [1.0])
    # 100 steps in 10 s: 800 more take 80 s.
    assert state.details == "training 200 of 1,000 steps · loss 1.00e+00 · 1 min 20 s left"
    clock[0] += 5
    assert state.details.endswith("1 min 15 s left")
    state.advance(1000, 1000, [1.0])
    assert state.details.startswith("evaluating · ")


@pytest.mark.parametrize(
    ("losses", "text"),
    [([3.0, 1.0, math.nan, 2.0, 0.5], "loss 1.50e+00 · 1 of 5 seeds diverged"),
     ([math.nan, 1.0, 2.0], "loss 1.50e+00 · 1 of 3 seeds diverged"),
     ([math.inf], "1 of 1 seed diverged")],
)  # fmt: skip
def test_the_loss_is_the_median_of_the_seeds_that_have_one(losses, text):
    state = State("transformer on least-squares", 1, 1, "training")
    state.advance(1, 10, losses)
    assert state.loss == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "under 1 s"), (40, "40 s"), (200, "3 min 20 s"), (1200, "20 min"), (7500, "2 h 5 min"),
     (7200, "2 h")],
)  # fmt: skip
def test_durations_are_written_as_people_say_them(seconds, text):
    assert duration(seconds) == text


def test_without_a_terminal_lines_are_printed(capsys, tmp_path):
    run("transformer", **TINY, out=tmp_path, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "transformer on least-squares: training 2 seeds for 20 steps"
    assert lines[-1].startswith("transformer on least-squares: mean digits of squared_error ")


def test_without_a_terminal_python_is_silent_unless_asked(capsys, tmp_path):
    run("zero", **TINY, out=tmp_path)
    assert capsys.readouterr().err == ""


def test_a_plain_line_comes_every_ten_seconds(clock, capsys):
    view, state = PlainView(), State("m on t", 1, 1, "training", steps=100)
    for second in range(1, 25):
        clock[0] = 100.0 + second
        state.advance(second, 100, [1.0])
        view.show([state])
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_terminal_shows_the_run_before_its_first_step(monkeypatch):
    screen = io.StringIO()
    real = Console
    monkeypatch.setattr(
        views, "Console",
        lambda **options: real(file=screen, force_terminal=True, width=80, **options),
    )  # fmt: skip
    view = TerminalView()
    try:
        view.show([State("transformer on least-squares", 1, 2, "preparing the training")])
        view._live.refresh()
        assert "1 of 2: transformer on least-squares" in screen.getvalue()
        assert "preparing the training" in screen.getvalue()
        view.line("done")
    finally:
        view.close()
    assert "done" in screen.getvalue()


def test_a_notebook_shows_a_bar_and_keeps_the_lines(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=lambda content, raw: shown.append(content))
    module = types.ModuleType("IPython.display")
    module.display = lambda content, raw, display_id: handle
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    view = NotebookView()
    state = State("<model>", 1, 1, "training", steps=10)
    state.advance(5, 10, [1.0])
    view.show([state])
    assert '<progress value="5" max="10">' in shown[-1]["text/html"]
    assert "&lt;model&gt;" in shown[-1]["text/html"]
    view.line("the result")
    assert '<progress value="5" max="10">' in shown[-1]["text/html"]
    view.close()
    assert shown[-1] == {"text/html": "the result", "text/plain": "the result"}


def test_a_notebook_is_noticed(monkeypatch):
    def put(name, module="ipykernel.zmqshell"):
        shell = type(name, (), {"__module__": module})()
        python = types.SimpleNamespace(get_ipython=lambda: shell)
        monkeypatch.setitem(sys.modules, "IPython", python)

    assert not views.in_notebook()
    put("ZMQInteractiveShell")
    assert views.in_notebook()
    put("Shell", "google.colab._shell")
    assert views.in_notebook()
    put("DatabricksShell", "dbruntime.shell")
    assert not views.in_notebook()
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "15.4")
    assert views.in_notebook()
    # A job there has no shell.
    monkeypatch.delitem(sys.modules, "IPython")
    assert not views.in_notebook()


def test_a_dumb_terminal_gets_lines(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    assert not views.on_terminal()
    with ProgressDisplay() as display:
        assert isinstance(display._view, PlainView)


@pytest.mark.slow
def test_jobs_of_other_processes_are_shown_one_below_the_other(monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(PlainView, "show", lambda _, states: shown.append(titles(states)))
    settings = Settings(tmp_path, "cpu")
    requests = [{**TINY, "model": model, "seeds": [0]} for model in ("lsa", "elsa")]
    jobs = [job_of([request], settings) for request in requests]
    executor = Local()
    with progress_of_jobs("planning") as display:
        executor.listener = display
        outcomes = dict(executor.map(run_job, jobs, workers=2))
    assert outcomes == {0: [None], 1: [None]}
    assert shown[0] == ["planning: preparing"]
    every = {line for lines in shown for line in lines}
    for number, model in enumerate(("lsa", "elsa"), start=1):
        assert f"{number} of 2: starting" in every
        assert f"{number} of 2: {model} on least-squares: preparing the training" in every
        assert f"{number} of 2: {model} on least-squares: evaluating" in every
    assert shown[-1] == []


def titles(states):
    return [f"{state.title}: {state.phase}" for state in states]


def test_jobs_of_this_process_have_the_hooks_runs(monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(PlainView, "show", lambda _, states: shown.append(titles(states)))
    cells = {"model": "lsa", "recipe_args": {"learning_rate": [1e-3, 1e-2]}}
    with progress_of_jobs("planning") as display:
        executor = Local()
        executor.listener = display
        file = parse_config(SweepFile, {"defaults": TINY, "grid": [cells]}, "sweep")
        result = sweep(file, out=tmp_path, executor=executor)
    assert len(result.records) == 2
    # The two cells train as one program.
    assert ["lsa on least-squares and 1 more: preparing the training"] in shown


def test_a_sweep_is_shown_from_its_first_second(cli, monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(PlainView, "show", lambda _, states: shown.append(titles(states)))
    file = tmp_path / "a.toml"
    file.write_text('[defaults]\ntask = "least-squares"\n[[grid]]\nmodel = "zero"\n')
    outcome = cli("sweep", file, "--out", tmp_path / "out", "--format", "csv")
    assert shown[0] == ["reading the records: preparing"]
    assert outcome.out.splitlines()[0].startswith("board,task,task version,")
    assert "1 run: 0 skipped, 1 to run" in outcome.err
    listed = cli("sweep", file, "--out", tmp_path / "out", "--status", "--format", "json").out
    assert [(row["state"], row["model"]) for row in json.loads(listed)] == [("done", "zero")]
    missing = cli(
        "sweep", file, "--out", tmp_path / "new", "--dry-run", "--columns", "model,models"
    )
    assert missing.out.split() == ["model", "models", "-" * 13, "zero", "1"]
