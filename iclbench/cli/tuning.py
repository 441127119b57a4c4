"""What `run --tuned` and `run --tune` do to a plan before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..api.errors import UsageError
from ..console import report

if TYPE_CHECKING:
    from ..api.tuning import TuningDocument
    from ..runs.plan import Plan
    from ..runs.settings import Settings


class Preparation:
    """Gives plans the arguments of tunings: those in `paths`, or with `trials` new ones.

    Raises UsageError for files that hold no tuning.
    """

    def __init__(self, paths: list[Path], trials: int | None, settings: Settings) -> None:
        if paths and trials is not None:
            raise UsageError("--tuned uses a tuning and --tune makes one: choose one")
        self.trials, self.settings = trials, settings
        self._documents: list[TuningDocument] = []
        self._used: set[int] = set()
        if paths:
            from ..runs.tuned import read_tunings

            self._documents = read_tunings(paths)

    def with_tuning(self, plan: Plan) -> Plan:
        """The plan with the tuning that fits it, or as it is."""
        if not self._documents or plan.recipe is None:
            return plan
        from ..runs.tuned import choose_tuning, tuned

        document = choose_tuning(plan, self._documents)
        if document is None:
            return plan
        self._used.add(id(document))
        return tuned(plan, document)

    def require_used(self) -> None:
        """Raise UsageError if no plan has used any of the tunings."""
        if self._documents and not self._used:
            what = ", ".join(f"{d.model} on {d.task}" for d in self._documents)
            raise UsageError(f"no tuning is of what runs; they are of {what}")

    def __call__(self, plan: Plan) -> Plan:
        """The plan as it is run: with --tune, tuned now."""
        if self.trials is None or plan.recipe is None:
            return plan
        from ..runs.tuned import tuned, write_tuning
        from ..sweeps.tuning.search import SearchSettings, tune

        name = f"tuning {plan.spec.model} on {plan.spec.task}"
        search = SearchSettings(trials=self.trials)
        document = tune(plan, self.settings, search, lambda line: report(f"{name}: {line}"))
        path = write_tuning(self.settings.out, document)
        report(f"{name}: {path}")
        return tuned(plan, document)
