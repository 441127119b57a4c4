"""Tracking: trackers follow the runs within a block, through the run hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from ..api.config import parse_config
from ..api.errors import UsageError
from ..api.record import Record
from ..api.spec import ResolvedSpec
from ..api.tracker import Tracker, losses_of, settings_of, summary_of
from ..files import path_of
from ..hookspecs import hookimpl
from ..plugins import host


@contextmanager
def tracking(
    names: str | Sequence[str],
    *,
    out: str | Path = "results",
    args: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[None]:
    """Let trackers follow every run of this process within the block.

    `names` is one tracker or several, `out` the folder of the records, and `args` maps a tracker's
    name to its arguments. Raises UsageError for an unknown name or argument, or where a tracker's
    package is missing.
    """
    chosen = [names] if isinstance(names, str) else list(names)
    given = dict(args or {})
    for name in given:
        if name not in chosen:
            raise UsageError(f"arguments for the tracker {name!r}, which is not asked for")
    folder = path_of(out)
    observers = {name: _Observer(_maker(name, given.get(name, {}), folder)) for name in chosen}
    with ExitStack() as stack:
        for name, observer in observers.items():
            stack.callback(observer.close)
            stack.enter_context(host().observing(observer, f"tracker {name}"))
        yield


def _maker(name: str, args: Mapping[str, Any], out: Path) -> Callable[[], Tracker]:
    """A function that makes the tracker of one run, after checking all that it needs."""
    tracker: type[Tracker] = host().load("tracker", name, Tracker)
    config = parse_config(tracker.Config, args, f"tracker {name}")
    tracker.prepare(config)
    return partial(tracker, config, out)


class _Observer:
    """Passes run hooks on to one tracker per run; an error of a tracker's method leaves it."""

    def __init__(self, make: Callable[[], Tracker]) -> None:
        self._make = make
        self._followed: dict[str, Tracker] = {}

    @hookimpl
    def iclbench_run_started(self, spec: ResolvedSpec) -> None:
        tracker = self._make()
        tracker.start(spec, settings_of(spec))
        self._followed[spec.id] = tracker

    @hookimpl
    def iclbench_training_step(self, spec: ResolvedSpec, step: int, loss: list[float]) -> None:
        tracker, values = self._followed.get(spec.id), losses_of(spec, loss)
        # A training that is repeated for a proof is no run.
        if tracker is not None and values:
            tracker.log(step, values)

    @hookimpl
    def iclbench_run_finished(self, spec: ResolvedSpec, record: Record) -> None:
        self._followed.pop(spec.id).finish(record, summary_of(record))

    @hookimpl
    def iclbench_run_failed(self, spec: ResolvedSpec, error: BaseException) -> None:
        self._followed.pop(spec.id).fail(error)

    def close(self) -> None:
        """End what is still followed: an error has dropped the observer in the middle of a run."""
        for tracker in self._followed.values():
            with suppress(Exception):
                tracker.fail(RuntimeError("the tracker was dropped"))
        self._followed.clear()
