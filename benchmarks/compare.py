"""Compare two files of the speed benchmark and report slowdowns.

    python -m benchmarks.compare BEFORE.json AFTER.json [--margin 0.15]

It prints every loop's model-steps per second before and after. The field's loops run none of
iclbench's code, so that their change is the machine's. The plain loop runs iclbench's modules, so
it is no yardstick for a change of them. Exit codes: 1 if the engine lost more than the margin,
2 if nothing is comparable.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from tabulate import tabulate

from . import argument_parser


def speeds(content: dict[str, Any]) -> dict[tuple[str, str], float]:
    """The median number of model-steps per second, by (configuration, loop)."""
    kind = f"{content['clock']}_seconds"
    return {
        (row["name"], loop["name"]): 1 / statistics.median(loop[kind])
        for row in content["configurations"]
        for loop in row["loops"]
    }


def compare(before: dict[str, Any], after: dict[str, Any], margin: float) -> tuple[str, int]:
    """A table of the common loops, and the exit code.

    Raises ValueError if the files were timed in different ways, or if the second lacks a loop of a
    configuration that it has.
    """
    for name in ("device", "threads", "clock"):
        if before[name] != after[name]:
            raise ValueError(f"two values of {name}: {before[name]} and {after[name]}")
    first, second = speeds(before), speeds(after)
    rows, code = [], 0
    measured = {name for name, _ in second}
    lost = [", ".join(key) for key in first if key not in second and key[0] in measured]
    if lost:
        raise ValueError(f"the second file lacks {'; '.join(lost)}")
    for key in first:
        if key in second:
            change = second[key] / first[key]
            slower = key[1].startswith("iclbench") and change < 1 - margin
            code = 1 if slower else code
            rows.append(
                {
                    "configuration": key[0],
                    "loop": key[1],
                    "before": f"{first[key]:.3g}",
                    "after": f"{second[key]:.3g}",
                    "change": f"{change - 1:+.0%}",
                    "": "slower" if slower else "",
                }
            )
    if not rows:
        return "nothing to compare: the files have no loop in common", 2
    return tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True), code


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--margin", type=float, default=0.15)
    arguments = parser.parse_args()
    try:
        files = [json.loads(path.read_text()) for path in (arguments.before, arguments.after)]
        text, code = compare(files[0], files[1], arguments.margin)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"benchmarks.compare: {error}", file=sys.stderr)
        sys.exit(2)
    print(text)
    sys.exit(code)


if __name__ == "__main__":
    main()
