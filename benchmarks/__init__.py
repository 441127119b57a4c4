"""Measurements of speed, memory, accuracy and coverage. Tests assert none of their timings."""

from argparse import ArgumentParser
from pathlib import Path

#: The source tree.
ROOT = Path(__file__).parents[1]


def argument_parser(about: str | None) -> ArgumentParser:
    """A parser for a benchmark; its help begins with the first line of the module's docstring."""
    return ArgumentParser(description=about.splitlines()[0] if about else None)
