"""Entry: one thing that a plugin provides."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TARGET = re.compile(r"[\w.]+:[\w.]+")


@dataclass(frozen=True)
class Entry:
    """One thing that a plugin provides.

    `target` says where it is (`"package.module:Name"`, imported when it is used), or is the object
    itself in a small plugin.
    """

    name: str
    summary: str
    target: Any

    def problem(self) -> str | None:
        """What is wrong with this entry, or None."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            return f"{self.name!r} is not a name: use lower-case words joined by hyphens"
        if not isinstance(self.summary, str) or self.summary.splitlines() != [self.summary]:
            return f"{self.name}: the summary must be one line"
        if isinstance(self.target, str) and not _TARGET.fullmatch(self.target):
            return f"{self.name}: target {self.target!r} is not of the form 'module:Name'"
        return None
