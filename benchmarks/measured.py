"""Tables of measurements with when, where and by which code they were made.

    python -m benchmarks.measured FILE

Prints the table in a file that a benchmark wrote with `--json`.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from iclbench.devices import cpu_name
from iclbench.files import write_atomically

from . import ROOT, argument_parser

Content = dict[str, Any]


def commit() -> str:
    """The commit of the source tree, with a mark if it was changed; empty without git."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def processor() -> str:
    """The processor's name, or else its architecture."""
    return cpu_name() or platform.machine()


def facts() -> dict[str, str]:
    """When, where and by which code a number was measured."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
        "processor": processor(),
        "torch": torch.__version__,
    }


def load() -> float | None:
    """How many processes have wanted a core in the last minute; None where no system says so."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def measured(command: str, rows: Sequence[dict[str, Any]]) -> Content:
    """What a file of measurements holds: the rows, the command and the circumstances."""
    return {
        "command": command,
        **facts(),
        "cores": os.cpu_count(),
        "load": load(),
        "rows": list(rows),
    }


def number(value: float | None, form: str = ".1e") -> str:
    """A statistic of a record, which is None where it is not finite."""
    return "inf" if value is None else format(value, form)


def text(content: Content) -> str:
    """The table below a line about its circumstances."""
    load = content["load"]
    busy = "" if load is None else f" at a load average of {load}"
    circumstances = (
        f"`{content['command']}`, {content['date']}, commit {content['commit']}, "
        f"{content['processor']}, {content['cores']} cores{busy}, "
        f"torch {content['torch']}:"
    )
    table = tabulate(content["rows"], headers="keys", tablefmt="github", disable_numparse=True)
    return f"{circumstances}\n\n{table}"


def publish(content: Content, path: Path | None) -> None:
    """Print the table, and write the file if there is to be one."""
    print(text(content))
    if path is not None:
        write_atomically(path, json.dumps(content, indent=1).encode() + b"\n")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("file", type=Path)
    print(text(json.loads(parser.parse_args().file.read_text())))


if __name__ == "__main__":
    main()
