"""Training speed of the field's loop, a plain loop on iclbench's modules, and the engine.

    python -m benchmarks [--device cpu|cuda] [--quick] [--json FILE] [--only NAME ...]

Every loop runs in its own process, and the loops take turns (A B A B). On a CPU all is repeated in
new processes, since a process keeps its memory layout. A CPU is timed by the wall clock on all
cores, or with `--threads 1` by the process's CPU time, which a busy machine affects less.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import torch

from iclbench import full_precision, write_atomically

from . import argument_parser
from .conditions import conditions
from .configurations import CONFIGURATIONS, Configuration
from .loops import Worker, makers
from .measured import commit, load
from .report import print_configuration
from .timing import interleave, matmul_peak

#: Number of processes per loop, one after another, on a CPU.
GENERATIONS = 3


def measure(configuration: Configuration, device: str, quick: bool) -> dict[str, Any]:
    """The timings of one configuration, as JSON."""
    names = list(makers(configuration, device))
    if quick:
        engines = [name for name in names if name.startswith("iclbench")]
        names = [name for name in names if name not in engines[2:]]
    generations = GENERATIONS if device == "cpu" and not quick else 1
    repeats, seconds = 3, 0.05 if quick else 0.25
    times: list[dict[str, list[float]]] = [{"wall": [], "cpu": []} for _ in names]
    reports: list[dict[str, Any]] = []
    for generation in range(generations):
        workers = [Worker(configuration, name, device) for name in names]
        seconds_per_step = interleave(workers, configuration.chunk, repeats, seconds, device)
        for total, new in zip(times, seconds_per_step, strict=True):
            for kind, values in new.items():
                total[kind] += values
        for worker in workers:
            if generation == generations - 1:
                reports.append(worker.report())
            worker.close()  # a report needs memory of its own
    return {
        "name": configuration.name,
        "batch": configuration.batch,
        "loops": [
            {
                "name": name,
                **report,
                **{
                    f"{kind}_seconds": [value / report["replicas"] for value in values]
                    for kind, values in time.items()
                },
            }
            for name, report, time in zip(names, reports, times, strict=True)
        ],
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--quick", action="store_true", help="smoke test of about a minute")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--only", nargs="*", help="parts of the names of configurations")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    setup = conditions(arguments.device, arguments.quick)
    chosen = [
        c.on(arguments.device) for c in CONFIGURATIONS
        if not arguments.only or any(part in c.name for part in arguments.only)
    ]  # fmt: skip
    if not chosen:
        parser.error(f"unknown configuration; known: {', '.join(c.name for c in CONFIGURATIONS)}")
    earlier = earlier_rows(arguments.json, setup) if arguments.only else []
    content = {**setup, "configurations": earlier}
    for configuration in chosen:
        row = measure_with_load(configuration, arguments.device, arguments.quick)
        rows = [r for r in content["configurations"] if r["name"] != configuration.name]
        content["configurations"] = in_order([*rows, row])
        print_configuration(content, row)
        if arguments.json:
            text = json.dumps(_rounded(content), indent=1) + "\n"
            write_atomically(arguments.json, text.encode())
    if arguments.json:
        print(f"written: {arguments.json}")


def measure_with_load(configuration: Configuration, device: str, quick: bool) -> dict[str, Any]:
    """One configuration's row, with the load average and the speed of a large product."""
    before = load()
    with full_precision(torch.float32):
        peak = matmul_peak(device)
    row = measure(configuration, device, quick)
    with full_precision(torch.float32):
        again = matmul_peak(device)
    return {
        **row,
        "peak_flops": {kind: max(peak[kind], again[kind]) for kind in peak},
        "load": [before, load()],
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "commit": commit(),
    }


def earlier_rows(path: Path | None, setup: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a file, if it exists; ends the program if they are of other conditions."""
    if path is None or not path.exists():
        return []
    content = json.loads(path.read_text())
    differing = [key for key in setup if content.get(key) != setup[key]]
    if differing:
        raise SystemExit(
            f"{path} was measured with other {', '.join(differing)}: name another file with "
            "--json, or leave out --only"
        )
    return list(content["configurations"])


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in the order of `CONFIGURATIONS`; those of other names, from an old file, come last."""
    places = {c.name: place for place, c in enumerate(CONFIGURATIONS)}
    return sorted(rows, key=lambda row: places.get(row["name"], len(places)))


def _rounded(value: Any) -> Any:
    """Round numbers to four digits, more than timings are accurate to."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    return [_rounded(v) for v in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
