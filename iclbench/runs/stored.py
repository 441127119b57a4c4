"""StoredFiles: the folder of a record, and what it reads of the files that it names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..api.errors import RecordError, unknown
from ..api.record import Record
from .objects import Objects

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


class StoredFiles:
    """The files of the record in `path`; each is checked against its digest when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A notebook may change its working directory before it reads them.
        self.objects = Objects.beside(path.absolute())

    def weights(self, record: Record) -> dict[int | None, dict[str, Tensor]]:
        """The state dict of every seed."""
        from ..training.checkpoints import load_weights

        if record.weights_file is None:
            raise RecordError(f"{record.spec.model} on {record.spec.task} has no weights")
        return load_weights(self.objects.sound_path(record.weights_file)).states

    def frame(self, record: Record, metric: str | None, evaluation: str) -> pd.DataFrame:
        """The values of a metric; see `Record.frame`."""
        import pandas as pd

        if evaluation not in record.evaluations:
            raise unknown("evaluation", evaluation, record.evaluations)
        results = record.evaluations[evaluation]
        name = record.ranking.metric if metric is None else metric
        if name not in results.values:
            raise unknown("metric", name, results.values)
        values = self.objects.read_array(results.values[name])  # (seeds, prompts[, axis])
        seeds, prompts, *axis = np.indices(values.shape).reshape(values.ndim, -1)
        table = pd.DataFrame({
            "seed": pd.array([record.seeds[i].seed for i in seeds], dtype="Int64"),
            "prompt": prompts,
        })  # fmt: skip
        if axis:
            curve = results.curves.get(name)
            labels = np.array(curve.values) if curve else np.arange(values.shape[2])
            table[curve.axis if curve else "position"] = labels[axis[0]]
        table[name] = values.reshape(-1)
        if name in results.floor.values:
            floor = self.objects.read_array(results.floor.values[name])  # (prompts[, axis])
            # A floor may be computed on the first prompts alone.
            padded = np.full(values.shape[1:], np.nan)
            padded[: len(floor)] = floor
            table["floor"] = np.broadcast_to(padded, values.shape).reshape(-1)
        return table
