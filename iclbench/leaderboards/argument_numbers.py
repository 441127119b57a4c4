"""Refusing rows without trained weights whose arguments hold many numbers.

Those numbers could be fitted to the board's prompts, and such a row has no held-out evaluation,
which would show it.
"""

from __future__ import annotations

from typing import Any

from ..api.errors import RecordError
from ..api.record import Record

#: Origins whose numbers follow from the run alone.
FOLLOWS = frozenset({"solver", "constructed"})
#: The most numbers in the arguments of such a row. Published rows have 7 at most.
MOST_NUMBERS = 16


def require_few_numbers(record: Record) -> None:
    """Raise RecordError for a solver or construction with too many numbers in its arguments."""
    spec = record.spec
    if spec.origin not in FOLLOWS:
        return
    count = numbers_in([spec.model_args, spec.weights_args])
    if count > MOST_NUMBERS:
        raise RecordError(
            f"its arguments hold {count:,} numbers; the limit is {MOST_NUMBERS}, since numbers can "
            "be fitted to the evaluation prompts. Train the weights: trained rows get a held-out "
            "evaluation"
        )


def numbers_in(value: Any) -> int:
    """How many numbers, with integers and without booleans, are in lists and tables."""
    if isinstance(value, dict):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(numbers_in, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))
