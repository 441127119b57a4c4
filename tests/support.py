"""Set-up that tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_python(*arguments: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this Python with `path` ahead of PYTHONPATH; the output is text."""
    folders = [str(path), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(folders),
            "PYTHONUTF8": "1",
            **environment,
        },
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
