"""The command line in odd places: every command works, or ends with one line and a code."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from iclbench.cli import main

SPEC = (
    "--task least-squares --task-args dim=2,examples=4 --recipe smoke --seeds 1 --eval-prompts 32 "
    "--device cpu"
)
SWEEP = """
[defaults]
task = "least-squares"
task_args = { dim = 2, examples = 4 }
eval_prompts = 32
[[grid]]
model = ["zero"]
"""
#: Commands by what they do; OUT is a place that does not exist, GIVEN a folder made before.
VERBS = {
    "help": "--help",
    "ls": "ls --json",
    "describe": "describe transformer",
    "plugins": "plugins",
    "run": f"run --model zero {SPEC} --out OUT",
    "train": f"run --model transformer {SPEC} --out OUT",
    "dry": f"run --model transformer {SPEC} --dry-run --out OUT",
    "sweep": "sweep GIVEN/sweep.toml --out OUT",
    "show": "show GIVEN/results",
    "verify": "verify GIVEN/results --device cpu",
    "submit": "submit GIVEN/results --to OUT --device cpu",
    "export": "export OUT --task read --prompts 2",
    "pull": "pull GIVEN/results --out OUT --no-verify",
    "boards": "leaderboard show --out GIVEN/results",
    "build": "leaderboard build GIVEN/published",
    "site": "leaderboard site OUT/site --from GIVEN/published",
    "figure": "leaderboard figure GIVEN/results --x model_args.layers --file OUT/figure.html",
}
WRITES = ["run", "sweep", "submit", "export", "pull", "site", "figure"]
#: Names for OUT that are long, odd, or taken.
PLACES = {
    "spaces": "a b/c d",
    "not ASCII": "ä…/数",
    "line break": "a\nb",
    "escape": "a\x1b[31mb",
    "too long": "x" * 3000,
    "too deep": "x/" * 2100,
    "a file": "file",
    "in a file": "file/results",
    "read-only": "/proc/results",
}


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Path:
    """A folder with a sweep file, the records of two models, and published ones."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "sweep.toml").write_text(SWEEP)
    for command in (
        f"run --model zero,transformer {SPEC} --out {folder}/results",
        f"submit {folder}/results --to {folder}/published --device cpu",
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["iclbench", *command.split()])
            with pytest.raises(SystemExit, match=r"^0$"):
                main()
    return folder


def arguments_of(verb: str, given: Path, out: str) -> list[str]:
    """The arguments of a command."""
    words = VERBS[verb].replace("GIVEN", str(given)).split()
    return [word.replace("OUT", out) if word.startswith("OUT") else word for word in words]


def is_sound(code: int, err: str) -> bool:
    """Whether a command worked, or ended with one line that says why."""
    told = [line for line in err.splitlines() if line.startswith("iclbench: error: ")]
    clean = (
        "Traceback" not in err and "Exception ignored" not in err and "ICLBENCH_DEBUG" not in err
    )
    return clean and (code == 0 or (len(told) == 1 and err.endswith(f"{told[0]}\n")))


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("place", PLACES)
def test_output_goes_anywhere_or_one_line_says_why(given, cli, tmp_path, monkeypatch, place, verb):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    code, _, err = cli(*arguments_of(verb, given, PLACES[place]))
    assert is_sound(code, err)
    works = place in {"spaces", "not ASCII", "line break", "escape"}
    assert (code == 0) == works
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.parametrize("verb", ["ls", "run", "show"])
def test_a_removed_working_directory_is_refused(given, cli, tmp_path, monkeypatch, verb):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    outcome = cli(*arguments_of(verb, given, "out"))
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "iclbench: error: the working directory no longer exists\n"


@pytest.mark.parametrize("verb", ["describe", "run", "sweep", "show"])
def test_an_argument_that_is_not_text_is_refused(given, cli, verb):
    code, out, err = cli(*arguments_of(verb, given, "out"), "caf\udce9\n")
    assert (code, out) == (2, "")
    assert err == "iclbench: error: the argument 'caf\\udce9\\n' is not valid utf-8 text\n"


ODD_NAMES = ["a" * 100_000, "two\nlines", "\x1b[31mred", "ä…", " "]


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: ascii(name[:10]))
@pytest.mark.parametrize(
    "command",
    [
        "describe NAME",
        "run --model NAME --task ridge",
        "run --model zero --task NAME",
        "run --model zero --task ridge --model-args NAME=1",
        "run --model zero --task ridge --dtype NAME",
        "run --model transformer --task ridge --recipe-args optimizer=NAME",
        "run --model transformer --task ridge --weights NAME",
        "sweep NAME",
        "show NAME",
        "verify NAME",
        "submit NAME",
        "leaderboard show --out NAME",
        "leaderboard figure NAME",
        "leaderboard build NAME",
    ],
)
def test_an_odd_name_is_refused_on_one_line(cli, tmp_path, monkeypatch, command, name):
    monkeypatch.chdir(tmp_path)
    code, _, err = cli(*[word.replace("NAME", name) for word in command.split()])
    assert code in {1, 2}
    assert is_sound(code, err)
    assert len(err) < 3000


SWEEP_FILES = {
    "not text": SWEEP.encode() + b'out = "caf\xe9"\n',
    "line break in a model": SWEEP.replace("zero", "ze\\nro").encode(),
    "surrogate in a model": SWEEP.replace("zero", "\\udce9").encode(),
    "escape in a key": SWEEP.encode() + b'"a\\u001b\\nb" = 1\n',
    "too long an out": b'out = "' + b"x" * 3000 + b'"\n' + SWEEP.encode(),
    "null in an out": b'out = "a\\u0000b"\n' + SWEEP.encode(),
}


@pytest.mark.parametrize("content", SWEEP_FILES.values(), ids=SWEEP_FILES)
def test_a_sweep_file_with_odd_text_is_refused_on_one_line(cli, tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_bytes(content)
    code, _, err = cli("sweep", "sweep.toml")
    assert code in {1, 2}
    assert "Traceback" not in err
    assert all(character.isprintable() for character in err.replace("\n", ""))


PYTHON = f"{shlex.quote(sys.executable)} -m iclbench"
#: Shells around a command, RUN, and the variables that replace those of this process.
SHELLS: dict[str, tuple[str, dict[str, str]]] = {
    "ASCII": ("RUN", {"PYTHONIOENCODING": "ascii"}),
    "Latin-1": ("RUN", {"PYTHONIOENCODING": "latin-1"}),
    "locale C": ("RUN", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "no environment": ('env -i PYTHONPATH="$PYTHONPATH" RUN', {}),
    "reader leaves": ("RUN | head -n 1; exit ${PIPESTATUS[0]}", {}),
    "no input": ("RUN <&-", {}),
    "no output": ("RUN >&-", {}),
    "no messages": ("RUN 2>&-", {}),
    "no streams": ("RUN <&- >&- 2>&-", {}),
    "full output": ("RUN >/dev/full", {}),
    "warnings are errors": ("RUN", {"PYTHONWARNINGS": "error"}),
    "folder not text": ("mkdir $'q\\xff' && cd $'q\\xff' && RUN", {}),
    "no folder": ("mkdir gone && cd gone && rmdir ../gone && RUN", {}),
}


def run_in_shell(shell: str, arguments: list[str], folder: Path) -> tuple[int, str]:
    """A command's exit code, 0 where its reader left, and its standard error."""
    line, variables = SHELLS[shell]
    path = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    done = subprocess.run(
        ["bash", "-c", line.replace("RUN", f"{PYTHON} {shlex.join(arguments)}")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=600,
        check=False,
    )
    code = done.returncode
    # A reader that left before the last line ends the command, which is no error of its own.
    left = shell == "reader leaves" and code == 1 and "iclbench: error: " not in done.stderr
    return 0 if left else code, done.stderr


def check_in_shell(shell: str, verb: str, given: Path, folder: Path) -> None:
    code, err = run_in_shell(shell, arguments_of(verb, given, "out"), folder)
    assert is_sound(code, err), err
    assert (code != 0) == (shell in {"no folder", "full output"}), err


@pytest.mark.parametrize("shell", SHELLS)
def test_a_list_is_printed_anywhere(tmp_path, shell):
    check_in_shell(shell, "ls", tmp_path, tmp_path)


#: A fourth of all pairs, such that each command meets three shells and each shell three commands.
PAIRS = [
    (shell, verb)
    for row, shell in enumerate(SHELLS)
    for column, verb in enumerate(verb for verb in VERBS if verb != "ls")
    if (row + column) % 4 == 0
]


@pytest.mark.slow
@pytest.mark.parametrize(("shell", "verb"), PAIRS)
def test_commands_work_anywhere(given, tmp_path, shell, verb):
    check_in_shell(shell, verb, given, tmp_path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("rnu", "no such command 'rnu'. Did you mean 'run'? See iclbench --help"),
        ("leaderboard", "missing command; see iclbench leaderboard --help"),
        ("run --modle zero", "no such option: --modle (Possible option"),
        ("run --model", "option '--model' requires an argument; see iclbench"),
        ("describe", "missing argument"),
        ("ls models more", "unexpected extra argument"),
    ],
)
def test_arguments_of_the_wrong_form_get_one_line(cli, line, told):
    code, out, err = cli(*line.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert err.startswith("iclbench: error: ")


def test_no_arguments_show_the_help(cli):
    assert cli("run", "-h").out == cli("run", "--help").out
    code, out, err = cli()
    assert (code, err) == (0, "")
    assert "Usage: iclbench" in out


def test_a_record_is_at_home_in_its_own_folder(cli, tmp_path, monkeypatch):
    out = tmp_path / "out"
    arguments = ("--task-args", "dim=2,examples=4", "--eval-prompts", 32, "--out", out)
    assert cli("run", "--model", "zero", "--task", "least-squares", *arguments).code == 0
    (path,) = out.glob("*/*.json")
    monkeypatch.chdir(path.parent)
    assert cli("verify", path.name).code == 0
    assert cli("run", "--weights", path.name, "--shift", "noisy").code == 0
    assert "least-squares" in cli("show", path.name).out


@pytest.mark.parametrize("options", [("--dry-run",), ("--suite", "core"), ("--force",), ("--tune",),
                                     ("--out", "elsewhere"), ("--engine", "plain")])  # fmt: skip
def test_what_a_record_under_shift_would_ignore_is_refused(cli, tmp_path, options):
    arguments = ("--task-args", "dim=2,examples=4", "--eval-prompts", 32, "--out", tmp_path)
    cli("run", "--model", "zero", "--task", "least-squares", *arguments)
    (path,) = tmp_path.glob("*/*.json")
    before = path.read_bytes()
    outcome = cli("run", "--weights", path, "--shift", "noisy", *options)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert f"{options[0]} has no meaning here" in outcome.err
    assert path.read_bytes() == before


def test_what_a_killed_process_staged_is_no_record(cli, tmp_path):
    out = tmp_path / "out"
    assert cli("run", "--model", "zero", "--task", "ridge", "--eval-prompts", 32,
               "--out", out).code == 0  # fmt: skip
    (path,) = out.glob("*/*.json")
    staged = out / ".iclbench-new-killed" / "ridge"
    staged.mkdir(parents=True)
    (staged / path.name).write_text(path.read_text()[:100])
    assert cli("verify", out).code == 0
