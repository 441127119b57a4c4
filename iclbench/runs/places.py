"""Where in a plugin's code something happened."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from ..api.errors import IclbenchError
from ..plugins import host


def place_of(error: BaseException) -> str:
    """The last line of a plugin's code that an error came through, as FILE:LINE.

    Empty for an error that says itself what is wrong, and for one that came through no plugin.
    """
    # A check's own error tells of another one. A plugin may make a circle of them.
    seen: set[int] = set()
    while isinstance(error, IclbenchError) and id(error) not in seen:
        seen.add(id(error))
        context = None if error.__suppress_context__ else error.__context__
        error = error.__cause__ or context or error
    if isinstance(error, IclbenchError):
        return ""
    return place_in(traceback.extract_tb(error.__traceback__))


def place_in(frames: Sequence[traceback.FrameSummary]) -> str:
    """The last of these frames that is a plugin's code, as FILE:LINE; empty where none is."""
    folders = [folder for plugin in host().plugins for folder in plugin.folders]
    modules = [sys.modules.get(plugin.module_name) for plugin in host().plugins]
    files = {getattr(module, "__file__", None) for module in modules}
    for frame in reversed(frames):
        if frame.filename in files or any(map(Path(frame.filename).is_relative_to, folders)):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""
