"""Speed benchmarks. Tests assert none of their timings."""

from pathlib import Path

#: The source tree.
ROOT = Path(__file__).parents[1]
