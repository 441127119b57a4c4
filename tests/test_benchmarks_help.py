"""Every benchmark says what it is by `--help`, and runs nothing then."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import benchmarks

FOLDER = Path(benchmarks.__file__).parent
PROGRAMS = sorted(
    file.stem for file in FOLDER.glob("*.py") if 'if __name__ == "__main__":' in file.read_text()
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_is_the_first_line_of_the_docstring(name, monkeypatch, capsys):
    try:
        module = importlib.import_module(f"benchmarks.{name}")
    except ImportError as error:
        pytest.skip(f"{error} (the extra bench)")
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit) as end:
        module.main()
    assert end.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert " ".join(module.__doc__.splitlines()[0].split()) in printed
