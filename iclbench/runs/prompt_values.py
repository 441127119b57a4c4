"""What a record measured on each prompt of its evaluation, and what its floor did."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..api.record import Record
from .statistics import by_prompt
from .store import read_values


def prompt_values(path: Path, record: Record, metric: str) -> np.ndarray:
    """The metric of the record in `path`, (seeds, prompts); an axis is averaged for each prompt.

    Raises RecordError where the file of its values is missing, as in a sparse checkout, or was
    changed, and KeyError where the record has no such metric.
    """
    return by_prompt(read_values(path, {metric: record.main.values[metric]})[metric])


def floor_values(path: Path, record: Record, metric: str) -> np.ndarray:
    """The metric of the record's floor, (prompts,); raises as `prompt_values` does."""
    values = read_values(path, {metric: record.main.floor.values[metric]})[metric]
    return np.asarray(by_prompt(values[None])[0])
