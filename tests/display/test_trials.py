"""The tables of a tuning's trials."""

from __future__ import annotations

from pathlib import Path

from iclbench import RunSpec
from iclbench.display.trials import planned_table
from iclbench.runs.plan import resolve
from iclbench.runs.settings import Settings
from iclbench.sweeps.tuning.planning import planned_search
from iclbench.sweeps.tuning.settings import SearchSettings

PLAN = resolve(RunSpec(model="transformer", task="least-squares", recipe="smoke"))
#: One value of everything but the width.
FIXED = {"optimizers": ["adam"], "schedules": ["constant"]}


def notes(trials, widths):
    space = {**FIXED, "model_args": {"width": widths}}
    search = SearchSettings(trials=trials, space=space)
    table = planned_table("it", planned_search(PLAN, Settings(Path("nowhere")), search))
    return table.notes[:-1]


def test_values_that_no_trial_has_are_named():
    width = PLAN.spec.model_args["width"]
    assert notes(4, [width, 999]) == [
        "Not tried: width=999. 4 trials have 1 shape (up to four share one); to try more, raise "
        "--trials."
    ]


def test_nothing_is_said_where_every_value_is_tried():
    assert notes(4, [8]) == []
    assert notes(12, [PLAN.spec.model_args["width"]]) == []
