"""The conformance checks of a task's shifts; they raise ConformanceError."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ..api.draws import EvaluationRandom
from ..api.errors import PLUGIN_FAILURES, first_line, unknown
from ..api.names import is_plain_name
from ..api.shift import Shift
from ..api.task import Task
from ..runs.checks import ConformanceError, expect


def check_shifts(task: Task[Any]) -> None:
    """Each shift has a plain name, prompts and a digest of its own, and finite targets."""
    digests = {task.evaluation_digest(2, 0)}
    for name, shift in task.shifts.items():
        expect(is_plain_name(name), f"the shift {name!r} needs letters, digits and hyphens")
        expect(bool(shift.summary), f"the shift {name} needs a summary")
        with _named(name):
            shifted = task.shifted(name)
            _check_change(shifted, name, shift)
            digest = shifted.evaluation_digest(2, 0)
            batches = list(shifted.evaluation_batches(2, 0, torch.float32))
        expect(digest not in digests, f"the shift {name} has the digest of other prompts")
        digests.add(digest)
        for batch in batches:
            finite = not batch.target.is_floating_point() or bool(batch.target.isfinite().all())
            expect(finite, f"the shift {name} has targets that are not finite")


@contextmanager
def _named(shift: str) -> Iterator[None]:
    """An exception of the plugin's code names the shift."""
    try:
        yield
    except ConformanceError:
        raise
    except PLUGIN_FAILURES as error:
        raise ConformanceError(f"the shift {shift}: {first_line(error)}") from error


def _check_change(shifted: Task[Any], name: str, shift: Shift) -> None:
    """What `change` returns are the task's draws, and perhaps others that `arrange` reads."""
    if shift.change is None:
        return
    random = EvaluationRandom(shifted.stream or shifted.name, 2, 0, shifted.cases[0])
    draws = dict(shifted.draw(random))
    changed = shift.change(dict(draws), random)
    returned = isinstance(changed, Mapping)
    expect(returned, f"the change of shift {name} returns {type(changed).__name__}, not the draws")
    added = changed.keys() - draws.keys()
    if added:
        read: Any = _Read(changed)
        shifted.arrange(read)
        for unread in sorted(added - read.names):
            raise ConformanceError(f"the change of shift {name}: {unknown('draw', unread, draws)}")


class _Read(UserDict[str, Any]):
    """Draws that note which of them somebody has looked for."""

    def __init__(self, draws: Mapping[str, Any]) -> None:
        self.names: set[object] = set()
        super().__init__(draws)

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.names.add(name)
        return super().__contains__(name)
