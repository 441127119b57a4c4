"""Tables of the speed benchmark's JSON.

python -m benchmarks.report [--goals | --loops] FILE.json …
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from tabulate import tabulate


def ratios(base: dict[str, Any], other: dict[str, Any], clock: str) -> list[float]:
    """How many times as fast `other` is, in every round."""
    key = f"{clock}_seconds"
    return [a / b for a, b in zip(base[key], other[key], strict=True)]


def spread(values: list[float]) -> str:
    """The median, and the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def fraction_of_peak(row: dict[str, Any], loop: dict[str, Any], clock: str) -> float:
    """Achieved FLOP/s over those of the large product."""
    seconds = statistics.median(loop[f"{clock}_seconds"])
    return float(loop["flops"] / seconds / row["peak_flops"][clock])


def table(about: dict[str, Any], row: dict[str, Any]) -> str:
    """One configuration's loops."""
    clock = about["clock"]
    loops = {loop["name"]: loop for loop in row["loops"]}
    first = row["loops"][0]
    plain = loops["plain loop"]
    lines = []
    for loop in row["loops"]:
        seconds = statistics.median(loop[f"{clock}_seconds"])
        wall = statistics.median(loop["wall_seconds"])
        line = {
            "loop": loop["name"],
            "model-steps/s": f"{1 / seconds:.3g}",
            "by the wall": f"{1 / wall:.3g}",
            f"× {first['name']}": spread(ratios(first, loop, clock)),
        }
        if first is not plain:
            line["× plain loop"] = spread(ratios(plain, loop, clock))
        memory = loop["peak_memory"]
        line |= {
            "of peak": f"{fraction_of_peak(row, loop, clock):.2f}",
            "memory": "" if memory is None else f"{memory / 2**20:.0f} MiB",
            **{name: f"{1e3 * value:.3g} ms" for name, value in loop["stages"].items()},
            "engine": "" if loop.get("overhead") is None else f"{loop['overhead']:.1%}",
        }
        lines.append(line)
    if about["clock"] == "wall":
        for line in lines:
            del line["by the wall"]
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True)


def print_configuration(about: dict[str, Any], row: dict[str, Any]) -> None:
    load = "–".join(f"{value:.0f}" for value in row["load"])
    print(f"### {row['name']}, batch {row['batch']}\n\nLoad average {load}, {row['created']}.\n")
    print(f"{table(about, row)}\n", flush=True)
    for loop in row["loops"]:
        if loop["note"]:
            print(f"{loop['name']}: {loop['note']}")


def headline(about: dict[str, Any]) -> str:
    """What the numbers were made with."""
    versions = ", ".join(f"{n} {v}" for n, v in about["versions"].items())
    clock = "CPU time of the process" if about["clock"] == "cpu" else "wall clock"
    threads = f"{about['threads']} thread" + ("s" if about["threads"] > 1 else "")
    return (
        f"{about['device']}, {about['cores']} cores, {threads}, {versions}, "
        f"{about['dtype']}; {clock}."
    )


#: (what, configuration, loop, compared with, least ratio) on a CPU.
CPU_TARGETS = (
    ("transformer, 12 layers", "transformer 12 × 64", "R = 1", "GPT2Model loop", 1.8),
    ("transformer, 2 layers", "transformer 2 × 64", "R = 1", "GPT2Model loop", 2.5),
    ("BaseConv, 3 layers", "baseconv 3 × 64", "R = 1", "Conv1d loop", 2.5),
    ("BaseConv, 12 layers", "baseconv 12 × 64", "R = 1", "Conv1d loop", 2.5),
    ("lsa at R = 64", "lsa, 1 layer", "R = 64", "plain loop", 5.0),
    ("linear attention at R = 64", "linear attention 1 × 16", "R = 64", "plain loop", 5.0),
)

#: The same on a GPU.
GPU_TARGETS = (
    ("transformer, 12 layers, best R", "transformer 12 × 64", "best", "GPT2Model loop", 10.0),
    ("transformer, 2 layers, best R", "transformer 2 × 64", "best", "GPT2Model loop", 15.0),
    ("transformer, 12 layers, R = 1", "transformer 12 × 64", "R = 1", "GPT2Model loop", 4.0),
    ("transformer, 2 layers, R = 1", "transformer 2 × 64", "R = 1", "GPT2Model loop", 4.0),
    ("BaseConv, 3 layers, best R", "baseconv 3 × 64", "best", "Conv1d loop", 20.0),
    ("BaseConv, 12 layers, best R", "baseconv 12 × 64", "best", "Conv1d loop", 20.0),
    ("linear attention at R = 256", "linear attention 1 × 16", "R = 256", "plain loop", 300.0),
)


def targets(about: dict[str, Any]) -> str:
    """What was to be reached, and what was measured; what is missing is left out."""
    clock, on_cpu = about["clock"], about["kind"] == "cpu"
    rows = {row["name"]: {loop["name"]: loop for loop in row["loops"]}
            for row in about["configurations"]}  # fmt: skip
    lines = []
    for what, name, replicas, base, least in CPU_TARGETS if on_cpu else GPU_TARGETS:
        loops = rows.get(name, {})
        ours = [n for n in loops if n.startswith("iclbench, ")]
        asked = ours if replicas == "best" else [n for n in ours if n == f"iclbench, {replicas}"]
        if asked:
            every = [ratios(loops[base], loops[n], clock) for n in asked]
            best = max(every, key=statistics.median)
            lines.append(_target(f"{what}, × {base}", best, least))
    if on_cpu:
        lines += _everywhere(about, rows)
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True)


def _everywhere(about: dict[str, Any], rows: dict[str, Any]) -> list[dict[str, str]]:
    """No configuration slower than a plain loop, the share of the peak, and the engine's own."""
    clock, lines = about["clock"], []
    for row in about["configurations"]:
        plain = rows[row["name"]]["plain loop"]
        every = [
            ratios(plain, loop, clock) for loop in row["loops"] if loop["name"].startswith("icl")
        ]
        slowest = min(every, key=statistics.median)
        lines.append(_target(f"{row['name']}, slowest R, × plain loop", slowest, 1.0))
        if row["name"] == "transformer 12 × 64":
            loop = rows[row["name"]]["iclbench, R = 1"]
            what = "transformer 12 × 64, of the large product's speed"
            lines.append(_target(what, [fraction_of_peak(row, loop, clock)], 0.6))
            # For what the engine saves, it is given no credit above.
            as_plain = fraction_of_peak(row, {**loop, "flops": plain["flops"]}, clock)
            lines.append(_target("the same, by the plain loop's operations", [as_plain], 0.6))
        if row["name"] == "transformer 2 × 64":
            share = rows[row["name"]]["iclbench, R = 1"].get("overhead")
            if share is not None:
                lines.append(
                    {
                        "what": "transformer 2 × 64, the engine's own share of a step",
                        "to reach": "3%",
                        "measured": f"{share:.1%}",
                        "": "reached" if share <= 0.03 else "missed",
                    }
                )
    return lines


def _target(what: str, values: list[float], least: float) -> dict[str, str]:
    middle = statistics.median(values)
    return {
        "what": what,
        "to reach": f"{least:g}",
        "measured": spread(values) if len(values) > 1 else f"{middle:.2f}",
        "": "reached" if middle >= least else f"missed by {max(0.01, 1 - middle / least):.0%}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.json")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--goals", action="store_true", help="what was to be reached, alone")
    part.add_argument("--loops", action="store_true", help="the loops alone")
    arguments = parser.parse_args()
    for path in arguments.files:
        about = json.loads(path.read_text())
        if not arguments.loops:
            print(headline(about) + "\n")
            print(targets(about) + "\n")
        for row in [] if arguments.goals else about["configurations"]:
            print_configuration(about, row)


if __name__ == "__main__":
    main()
