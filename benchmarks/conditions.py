"""The conditions that the numbers of the speed benchmark depend on."""

from __future__ import annotations

import os
from importlib import metadata
from typing import Any

import torch

from .measured import processor
from .timing import clock_kind


def conditions(device: str, quick: bool) -> dict[str, Any]:
    """The conditions that the numbers depend on."""
    # A distribution's version may lack the build: 2.13.0 for 2.13.0+cu130.
    versions = {"torch": str(torch.__version__)}
    versions |= {name: version_of(name) for name in ("transformers", "iclbench")}
    return {
        "device": torch.cuda.get_device_name() if device != "cpu" else processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "versions": versions,
        "dtype": "float32",
        "quick": quick,
        "kind": device,
        "clock": clock_kind(device),
    }


def version_of(name: str) -> str:
    """A distribution's version; exits with one line if it is missing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        raise SystemExit(f"benchmarks: {name} is missing: pip install 'iclbench[bench]'") from None
