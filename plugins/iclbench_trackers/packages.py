"""The package that a tracker needs, imported when the tracker is asked for."""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import Any

from iclbench import UsageError


def import_package(module: str, tracker: str) -> Any:
    """The module; raises UsageError if it is not installed, or its import fails."""
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # A warning about another package's code is nothing that a user can act on.
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        is_missing = isinstance(error, ModuleNotFoundError)
        reason = f"{error.name or name} is not installed" if is_missing else str(error)
        raise UsageError(
            f"tracker {tracker}: {reason}; pip install 'iclbench[{tracker}]'"
        ) from None
