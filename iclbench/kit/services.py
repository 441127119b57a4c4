"""The checks of graders, trackers and executors, which may need what this machine lacks."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ..api.errors import PLUGIN_FAILURES, RunError, UsageError, reason_of
from ..api.executor import Executor
from ..api.grader import Grader
from ..api.record import Record
from ..api.tracker import Tracker, settings_of
from ..plugins import host
from ..runs.checks import expect
from ..runs.tracking import tracking
from ..sweeps.conformance import check_executor, try_one
from .parts import check_config, check_grader
from .trials import (
    Checks,
    NotCheckedError,
    distribution_of,
    require_defaults,
    tiny_run,
    trainable,
)


def _arguments(kind: str, name: str, base: type) -> str:
    check_config(host().load(kind, name, base).Config)
    return "described, and the same after JSON"


def grader_checks(kind: str, name: str) -> Checks:
    """The checks of a grader."""

    def scores() -> str:
        grader = host().load(kind, name, Grader)
        require_defaults(grader.Config, "; call check_grader")
        check_grader(grader(grader.Config()))
        return "the same twice, and for each completion alone"

    yield "arguments", partial(_arguments, kind, name, Grader)
    yield "scores", scores


def tracker_checks(kind: str, name: str) -> Checks:
    """The checks of a tracker."""

    def following() -> str:
        model, task = trainable(distribution_of(kind, name))
        earlier = len(host().problems)
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory())
            try:
                stack.enter_context(tracking(name, out=folder))
            except UsageError as error:
                raise NotCheckedError(f"it can't be prepared here: {error}") from None
            record = tiny_run(model, task.name)
        # A run goes on without a tracker that raises, so only the host knows.
        dropped = [p for p in host().problems[earlier:] if f"tracker {name} " in p]
        expect(not dropped, "; ".join(dropped))
        _check_failing(host().load(kind, name, Tracker), record)
        return f"a run of {model.name} on {task.name}, and one that fails"

    yield "arguments", partial(_arguments, kind, name, Tracker)
    yield "run", following


def _check_failing(tracker: type[Tracker], record: Record) -> None:
    """A tracker of a run that fails is told so, and raises nothing."""
    with TemporaryDirectory() as folder:
        follower = tracker(tracker.Config(), Path(folder))
        try:
            follower.start(record.spec, settings_of(record.spec))
            follower.fail(RuntimeError("the kit lets this run fail"))
        except PLUGIN_FAILURES as error:
            expect(False, f"of a run that fails: {reason_of(error)}")


def executor_checks(kind: str, name: str) -> Checks:
    """The checks of an executor."""

    def jobs() -> str:
        executor_class = host().load(kind, name, Executor)
        require_defaults(executor_class.Config, "; call check_executor")
        # Here, since nodes of a cluster may not share the folder of temporary files.
        with TemporaryDirectory(prefix="iclbench-check-", dir=Path.cwd()) as shared:
            executor = executor_class(None, Path(shared, "jobs"))
            try:
                try_one(executor)
            except (UsageError, RunError) as error:
                raise NotCheckedError(f"it can't run jobs here: {error}") from None
            check_executor(executor, folder=shared)
        return "results, failures and interruption with 2 workers"

    yield "arguments", partial(_arguments, kind, name, Executor)
    yield "jobs", jobs
