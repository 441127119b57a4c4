"""The example plugin: built, installed with an iclbench wheel, and run like a third party's."""

import ast
import io
import os
import subprocess
import sys
import sysconfig
import tokenize
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import only_record

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "iclbench-plugin-hyena-lite"
COMMAND = (
    "iclbench run --model hyena-lite --task least-squares --recipe smoke --seeds 2"
    " --eval-prompts 64"
)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def code_lines(source: str) -> int:
    """The number of lines of code: no blank line, comment or docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    spans = [(t.start[0], t.end[0]) for t in tokens if t.type not in NO_CODE]
    lines = {line for first, last in spans for line in range(first, last + 1)}
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


class Environment:
    """A fresh virtual environment; `programs` are its scripts, `packages` its site-packages."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=os.name != "nt")
        prefixes = {"base": str(folder), "platbase": str(folder)}
        paths = sysconfig.get_paths("venv", vars=prefixes)
        self.programs, self.packages = Path(paths["scripts"]), Path(paths["purelib"])

    def see(self, folders: Sequence[str]) -> None:
        """Import from these folders too, after its own; their .pth files are not read."""
        (self.packages / "dependencies.pth").write_text("\n".join(folders), encoding="utf-8")

    def run(self, program: str, *arguments: str | Path, cwd: Path) -> str:
        """The output of one of its programs; fails unless the exit code is 0."""
        return execute(self.programs / program, *arguments, cwd=cwd)


def execute(*command: str | Path, cwd: Path) -> str:
    """The standard output of a command without inherited Python, pip or pytest settings."""
    ours = ("PYTHON", "PIP", "PYTEST", "ICLBENCH", "VIRTUAL_ENV")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    # No bytecode in the example's folder; one thread, since several are slow on a busy machine.
    settings = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**inherited, **settings},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(*arguments: str | Path, cwd: Path) -> None:
    quiet = ("--isolated", "--disable-pip-version-check", "--no-input")
    execute(sys.executable, "-m", "pip", *quiet, *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with both wheels that also imports this environment's packages."""
    folder = tmp_path_factory.mktemp("example")
    wheels, offline = folder / "wheels", ("--no-deps", "--no-index")
    pip("wheel", *offline, "--no-build-isolation", "-w", wheels, ROOT, EXAMPLE, cwd=folder)
    environment = Environment(folder / "environment")
    # Install before adding this environment's packages, so that pip does not replace them.
    built = sorted(wheels.glob("*.whl"))
    pip("--python", environment.programs / "python", "install", *offline, *built, cwd=folder)
    environment.see(
        [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    )
    return environment


def test_code_lines_skips_comments_and_docstrings():
    source = '"""Of two\n\nlines."""\n\n# A comment.\nx = (\n    1,  # one\n)\n\n\n'
    source += 'def f():\n    """Doc."""\n    return """a\n\nb"""\n'
    assert code_lines(source) == 3 + 1 + 3


def test_plugin_is_under_25_lines_of_code():
    assert code_lines((EXAMPLE / "iclbench_hyena_lite.py").read_text(encoding="utf-8")) < 25


@pytest.mark.slow
def test_imports_are_from_the_wheels(environment: Environment, tmp_path: Path):
    script = "import importlib, sys\nfor name in sys.argv[1:]:\n"
    script += "    print(importlib.import_module(name).__file__)"
    modules = ("iclbench", "iclbench_least_squares", "iclbench_hyena_lite")
    files = environment.run("python", "-c", script, *modules, cwd=tmp_path).splitlines()
    assert len(files) == len(modules)
    assert all(Path(file).is_relative_to(environment.packages) for file in files)


@pytest.mark.slow
def test_documented_command_runs_it(environment: Environment, tmp_path: Path):
    assert COMMAND in (EXAMPLE / "README.md").read_text(encoding="utf-8")
    program, *arguments = COMMAND.split()
    table = environment.run(program, *arguments, "--out", "records", cwd=tmp_path)
    record = only_record(tmp_path / "records")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = {plugin.distribution: plugin.version for plugin in record.plugins}
    assert versions[project["name"]] == project["version"]
    assert "iclbench" in versions
    # The seeds were trained as one program, which needs an architecture that supports vmap.
    assert record.training.replicas == 2
    first_words = [line.split()[0] for line in table.splitlines() if line.strip()]
    assert "attainable" in first_words
    assert any("hyena-lite" in line and "iclbench" not in line for line in table.splitlines())


@pytest.mark.slow
def test_own_tests_pass(environment: Environment, tmp_path: Path):
    arguments = ("-p", "no:cacheprovider", EXAMPLE / "tests")
    assert "passed" in environment.run("python", "-m", "pytest", *arguments, cwd=tmp_path)
