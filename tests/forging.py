"""Forged records: edited as somebody would who knows the code, with every digest mended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from iclbench.api.spec import digest_of, spec_id
from iclbench.runs.objects import Objects
from iclbench.runs.statistics import summarize_run
from iclbench.runs.store import read_record, read_values

#: A record as JSON.
Content = dict[str, Any]


def reseal(path: Path, change: Callable[[Content], object]) -> Path:
    """Edit the record, mend its id and digest, and name the file after them; returns its path."""
    content = json.loads(path.read_text("utf-8"))
    change(content)
    content["id"] = spec_id(content["spec"])
    content["digest"] = digest_of({k: v for k, v in content.items() if k != "digest"})
    path.unlink()
    target = path.with_name(f"{content['spec']['model']}-{content['id']}.json")
    target.write_text(json.dumps(content), "utf-8")
    return target


def with_values(
    path: Path,
    values: Mapping[str, np.ndarray],
    floor_values: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Give the record other values of these metrics, with the statistics that follow from them."""
    record, objects = read_record(path), Objects.beside(path)
    floor = record.main.floor
    values = {**read_values(path, record.main.values), **values}
    floor_values = {**read_values(path, floor.values), **(floor_values or {})}
    summary = summarize_run(values, floor_values, {})
    dumped = {
        "metrics": {name: s.model_dump(mode="json") for name, s in summary.metrics.items()},
        "seeds": [
            {name: s.model_dump(mode="json") for name, s in metrics.items()}
            for metrics in summary.seeds
        ],
        "values": {
            name: reference.model_dump(mode="json")
            for name, reference in objects.write_arrays(values).items()
        },
    }
    floor_dumped = {
        "metrics": {name: s.model_dump(mode="json") for name, s in summary.floor.items()},
        "values": {
            name: reference.model_dump(mode="json")
            for name, reference in objects.write_arrays(floor_values).items()
        },
    }

    def change(content: Content) -> None:
        content["evaluations"]["main"].update(dumped)
        content["evaluations"]["main"]["floor"].update(floor_dumped)

    return reseal(path, change)
