"""How many trials a tuning has. The command line's help shows both, and imports nothing heavy."""

from __future__ import annotations

#: Where nothing else is asked for.
TRIALS = 12
MOST_TRIALS = 10_000
