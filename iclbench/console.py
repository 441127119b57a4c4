"""Messages on standard error."""

from __future__ import annotations

import sys


def report(line: str) -> None:
    """Print one line on standard error."""
    print(f"iclbench: {line}", file=sys.stderr)
