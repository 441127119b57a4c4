"""The number of a tuning's trials, and their budget. The command line's help shows the number."""

from __future__ import annotations

from ...api.budget import Budget
from ...api.tuning import SHARE

#: Where nothing else is asked for.
TRIALS = 12
MOST_TRIALS = 10_000


def trial_budget(budget: str) -> str:
    """The budget of a trial: a tenth, at least a second."""
    whole = Budget.parse(budget)
    return str(whole._replace(seconds=max(1, round(SHARE * whole.seconds))))
