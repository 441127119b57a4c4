"""One call of a part of `python -m benchmarks.gpu`."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from iclbench.devices import torch_build

#: The exit code of a part that goes on in the next call.
NOT_YET = 3


@dataclass(frozen=True)
class Slice:
    """One call of a part: where it works, for how long, and at which size."""

    device: str
    toy: bool
    #: Where results and state are written; it lasts as long as the call.
    folder: Path
    until: float
    seeds: int = 2
    budget: str = "gpu-1h"
    #: Whether a part takes only its first minutes' worth.
    short: bool = False

    @property
    def machine(self) -> dict[str, str]:
        """The device and the build of torch that a result depends on."""
        name = torch.cuda.get_device_name() if self.device == "cuda" else "cpu"
        return {"device": name, "build": torch_build()}

    @property
    def left(self) -> float:
        """Seconds left."""
        return max(0.0, self.until - time.monotonic())

    def read(self, name: str) -> Any:
        """The content of a JSON file, or None."""
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else None

    def write(self, name: str, content: Any) -> None:
        """Write a JSON file."""
        path = self.folder / name
        path.with_suffix(".new").write_text(json.dumps(content, indent=1) + "\n")
        path.with_suffix(".new").replace(path)
