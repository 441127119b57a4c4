"""What `run --tuned` and `run --tune` do to a plan before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.errors import UsageError
from ..console import counted, report
from ..sweeps.tuning.trials import MOST_TRIALS, TRIALS

if TYPE_CHECKING:
    from ..api.tuning import TuningDocument
    from ..runs.plan import Plan
    from ..runs.settings import Settings

TrialsOfTune = Annotated[
    int | None,
    typer.Option(
        "--trials",
        min=1,
        max=MOST_TRIALS,
        metavar="N",
        help=f"Trials of --tune, per board; default: {TRIALS}.",
    ),
]


class Preparation:
    """Gives plans the arguments of tunings: those in `paths`, or with `tune` new ones.

    `options` are those of training that the user gave. Raises UsageError for files that hold no
    tuning, for `trials` of no tuning, and for a device that is not there.
    """

    def __init__(
        self,
        paths: list[Path],
        settings: Settings,
        options: Sequence[str],
        *,
        tune: bool,
        trials: int | None,
    ) -> None:
        from ..devices import find_device

        if paths and tune:
            raise UsageError("--tuned uses a tuning and --tune makes one: choose one")
        if trials is not None and not tune:
            raise UsageError("--trials needs --tune")
        find_device(settings.device)
        self.trials, self.settings = (trials or TRIALS) if tune else None, settings
        self._options = options
        self._documents: list[TuningDocument] = []
        self._used: set[int] = set()
        self._unfit: dict[str, str] = {}
        if paths:
            from ..runs.tuned import read_tunings

            self._documents = read_tunings(paths)

    @property
    def tunes(self) -> bool:
        """Whether plans that train are tuned before they run."""
        return self.trials is not None

    def with_tuning(self, plan: Plan, board: str | None = None) -> Plan:
        """The plan with the tuning that fits it, or as it is; `board` is that of a suite."""
        if not self._documents or plan.recipe is None:
            return plan
        from ..leaderboards.arguments import argument_pairs
        from ..runs.tuned import choose_tuning, imposed_arguments, why_none_fits
        from ..runs.tuned import tuned as with_tuning

        document = choose_tuning(plan, self._documents)
        name = f"{plan.spec.model} on {board or plan.spec.task}"
        if document is None:
            self._unfit[name] = why_none_fits(plan, self._documents)
            return plan
        self._used.add(id(document))
        chosen = with_tuning(plan, document)
        best = {**document.best.model_args, **document.best.recipe_args}
        args = {**imposed_arguments(plan, document), **best}
        report(f"{name}: tuned: {argument_pairs(args)}")
        return chosen

    def require_used(self, plans: Sequence[Plan]) -> None:
        """Raise UsageError if none of the plans has used any of the tunings.

        Says which plans train without one, and where none trains, which options have no effect.
        """
        if self._documents and not self._used:
            if not self._unfit:
                raise UsageError("nothing is trained: --tuned does not apply")
            what = dict.fromkeys(f"{d.model} on {d.task}" for d in self._documents)
            reasons = [*dict.fromkeys(self._unfit.values()), f"tunings are of {', '.join(what)}"]
            raise UsageError("; ".join(reasons))
        for name, reason in self._unfit.items():
            report(f"{name}: not tuned, as {reason}")
        if self._options and plans and all(plan.recipe is None for plan in plans):
            report(f"ignored, as nothing is trained: {', '.join(self._options)}")

    def tuning_cost(self, plans: Sequence[Plan]) -> str | None:
        """What --tune takes at most, as trials that have a record are not run again."""
        trained = [plan for plan in plans if plan.recipe is not None]
        if self.trials is None or not trained:
            return None
        from ..api.budget import Budget
        from ..runs.suites import in_words, summed
        from ..sweeps.tuning.trials import trial_budget

        budgets = [plan.spec.budget for plan in trained if plan.spec.budget is not None]
        costs = [Budget.parse(trial_budget(budget)).times(self.trials) for budget in budgets]
        where = f"for each of {len(trained)} trainings" if len(trained) > 1 else "on the board"
        cost = f"{counted(self.trials, 'trial')} {where}"
        parts = [] if len(budgets) == len(trained) else ["at a tenth of the steps"]
        parts += [f"at most {in_words(whole)}" for whole in summed(costs)]
        return f"{cost}, {' and '.join(parts)}"

    def __call__(self, plan: Plan) -> Plan:
        """The plan as it is run: with --tune, tuned now."""
        if self.trials is None or plan.recipe is None:
            return plan
        from ..display.tune import tune_with_progress
        from ..files import require_writable
        from ..runs.store import require_results
        from ..runs.tuned import tuned
        from ..sweeps.tuning.settings import SearchSettings

        require_results(self.settings.out)
        require_writable(self.settings.out)
        search = SearchSettings(trials=self.trials)
        document, path = tune_with_progress(plan, self.settings, search)
        report(f"tuning {plan.spec.model} on {plan.spec.task}: {path}")
        return tuned(plan, document)
