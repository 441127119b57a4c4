"""Entry: one name in the catalog of a plugin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .names import is_entry_name, is_plain_name

#: The longest name, in characters: names of files hold it.
_LONGEST_NAME = 80
_TARGET = re.compile(r"[\w.]+:[\w.]+")


@dataclass(frozen=True)
class Entry:
    """One model, task, recipe, metric, grader, executor, tracker or command of a plugin.

    `name` is lower-case words joined by hyphens, and `summary` one line. `target` is the object's
    address (`"package.module:Name"`, imported when it is used), or the object itself. A sequence
    architecture may give its `mixer` a name of its own, by which hybrids know it.
    """

    name: str
    summary: str
    target: Any
    mixer: str = ""

    def problem(self) -> str | None:
        """Why this entry is invalid, or None."""
        if not isinstance(self.name, str) or not is_entry_name(self.name):
            return f"{self.name!r} is not a name: use lower-case words joined by hyphens"
        if not isinstance(self.mixer, str) or (self.mixer and not is_entry_name(self.mixer)):
            return f"{self.name}: mixer {self.mixer!r} is not lower-case words joined by hyphens"
        if len(self.name) > _LONGEST_NAME or not is_plain_name(self.name):
            shown = repr(self.name[:20]) + "…" * (len(self.name) > 20)
            return f"{shown}: a name has at most {_LONGEST_NAME} characters, and is no device's"
        if not isinstance(self.summary, str) or self.summary.splitlines() != [self.summary]:
            return f"{self.name}: the summary must be one line"
        if isinstance(self.target, str) and not _TARGET.fullmatch(self.target):
            is_file = self.target.endswith(".toml")
            hint = f"; of a file, give Path(__file__).parent / {self.target!r}" if is_file else ""
            return f"{self.name}: target {self.target!r} is not of the form 'module:Name'{hint}"
        return None
