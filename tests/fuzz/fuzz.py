"""`make fuzz`: run seeded cases of every kind and print the counts."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from cases import CASES, make_records
from invocation import UNPLANNED, Outcome

#: After so many cases the counts are printed.
PART = 500


def fuzz(kind: str, seeds: range, root: Path, records: Path) -> tuple[Counter[str], list[str]]:
    """Run the cases of these seeds; returns how they ended, and what went wrong."""
    counts: Counter[str] = Counter()
    failures = []
    for seed in seeds:
        outcome = CASES[kind](seed, root, records)
        counts[f"exit {outcome.code}"] += 1
        counts["unplanned errors"] += outcome.unplanned
        problem = outcome.problem()
        if problem is not None:
            counts["failures"] += 1
            failures.append(f"{kind} {seed}: {outcome.words}\n{problem}")
        if outcome.unplanned:
            failures.append(f"{kind} {seed}: {_reason(outcome)}")
    return counts, failures


def _reason(outcome: Outcome) -> str:
    return next(line for line in outcome.err.splitlines() if UNPLANNED.search(line))


def main() -> None:
    """Run the cases that the command line asks for; exit with 1 if any fails."""
    parser = argparse.ArgumentParser(prog="python tests/fuzz/fuzz.py")
    parser.add_argument("--cases", type=int, default=500, help="cases of each kind")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--kind", choices=[*CASES], action="append", help="default: all kinds")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        records = make_records(Path(folder, "sound"))
        for kind in options.kind or CASES:
            start, total = time.perf_counter(), Counter[str]()
            stop = options.seed + options.cases
            for first in range(options.seed, stop, PART):
                seeds = range(first, min(first + PART, stop))
                counts, failures = fuzz(kind, seeds, Path(folder, "arena"), records)
                total.update(counts)
                failed |= bool(failures)
                ends = ", ".join(f"{name} {total[name]}" for name in sorted(total))
                seconds = time.perf_counter() - start
                done = f"{kind}: {seeds.stop - options.seed} cases in {seconds:.0f} s"
                lines = [*failures, f"{done}; {ends}"]
                print("\n".join(lines), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
