"""Two files of the speed benchmark: what became slower.

    python -m benchmarks.compare BEFORE.json AFTER.json [--margin 0.15]

What is compared is each loop's speed over the plain loop's of the same round, which a busy machine
disturbs least. Exits with 1 where that fell by more than the margin, 2 where nothing is comparable.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from tabulate import tabulate

from .report import ratios


def relative_speeds(content: dict[str, Any]) -> dict[tuple[str, str], float]:
    """(configuration, loop) → its median speed in those of the plain loop."""
    found = {}
    for row in content["configurations"]:
        loops = {loop["name"]: loop for loop in row["loops"]}
        for name, loop in loops.items():
            if name.startswith("iclbench"):
                values = ratios(loops["plain loop"], loop, content["clock"])
                found[row["name"], name] = statistics.median(values)
    return found


def compare(before: dict[str, Any], after: dict[str, Any], margin: float) -> tuple[str, int]:
    """A table of what is in both, and the exit code; raises ValueError for two ways of timing."""
    for what in ("device", "threads", "clock"):
        if before[what] != after[what]:
            raise ValueError(f"two values of {what}: {before[what]} and {after[what]}")
    first, second = relative_speeds(before), relative_speeds(after)
    rows, code = [], 0
    for key in first:
        if key in second:
            change = second[key] / first[key]
            slower = change < 1 - margin
            code = 1 if slower else code
            rows.append(
                {
                    "configuration": key[0],
                    "loop": key[1],
                    "before": f"{first[key]:.2f}",
                    "after": f"{second[key]:.2f}",
                    "change": f"{change - 1:+.0%}",
                    "": "slower" if slower else "",
                }
            )
    if not rows:
        return "nothing to compare: no loop is in both files", 2
    return tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True), code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--margin", type=float, default=0.15)
    arguments = parser.parse_args()
    try:
        files = [json.loads(path.read_text()) for path in (arguments.before, arguments.after)]
        text, code = compare(files[0], files[1], arguments.margin)
    except (OSError, ValueError, KeyError) as error:
        print(f"benchmarks.compare: {error}", file=sys.stderr)
        sys.exit(2)
    print(text)
    sys.exit(code)


if __name__ == "__main__":
    main()
