"""Floor: what kind of a bound a task's best possible values are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

FloorKind = Literal["exact", "bayes", "bound", "none"]
"""What a task's floor is.

exact: the attainable error, that of the exact answer to the rounded prompt, rounded once to the
run's dtype; bayes: the error of the best predictor of a target that the prompt does not determine;
bound: values that no predictor is expected to pass; none: there is no floor, and the row of a
reference is a target at most.
"""

FLOOR_NAMES: Mapping[FloorKind, str] = {
    "exact": "attainable",
    "bayes": "Bayes predictor",
    "bound": "bound",
    "none": "reference",
}
