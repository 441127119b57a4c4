"""Print tables from the JSON files of the speed benchmark.

python -m benchmarks.report [--targets | --loops] FILE.json …
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from tabulate import tabulate

from . import argument_parser


def ratios(base: dict[str, Any], other: dict[str, Any], clock: str) -> list[float]:
    """The speed of `other` relative to `base`, by round."""
    key = f"{clock}_seconds"
    return [a / b for a, b in zip(base[key], other[key], strict=True)]


def spread(values: list[float]) -> str:
    """The median with quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def fraction_of_peak(row: dict[str, Any], loop: dict[str, Any], clock: str) -> float:
    """FLOP/s as a fraction of those of the large product."""
    seconds = statistics.median(loop[f"{clock}_seconds"])
    return float(loop["flops"] / seconds / row["peak_flops"][clock])


def table(setup: dict[str, Any], row: dict[str, Any]) -> str:
    """The table of one configuration's loops."""
    clock = setup["clock"]
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
            "wall clock": f"{1 / wall:.3g}",
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
    if clock == "wall":
        for line in lines:
            del line["wall clock"]
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True)


def print_configuration(setup: dict[str, Any], row: dict[str, Any]) -> None:
    """Print one configuration's table with its notes."""
    load = "–".join(f"{value:.0f}" for value in row["load"]) or "unknown"
    made = f"{row['created']}, {code_of(row)}"
    print(f"#### {row['name']}, batch {row['batch']}\n\nLoad average {load}, {made}.\n")
    print(f"{table(setup, row)}\n", flush=True)
    for loop in row["loops"]:
        if loop["note"]:
            print(f"{loop['name']}: {loop['note']}")


def code_of(row: dict[str, Any]) -> str:
    """The commit by which a row was measured."""
    return f"commit {row['commit']}" if "commit" in row else "commit not recorded"


def measured_on(setup: dict[str, Any]) -> str:
    """When and by which code the configurations were measured, in one sentence."""
    members: dict[str, list[str]] = {}
    for row in setup["configurations"]:
        members.setdefault(f"{row['created'][:10]} ({code_of(row)})", []).append(row["name"])
    most = max(members, key=lambda made: len(members[made]), default="never")
    others = [f"{', '.join(names)}: {made}" for made, names in members.items() if made != most]
    return "; ".join([f"Measured on {most}", *others]) + "."


def headline(setup: dict[str, Any]) -> str:
    """The conditions of the measurements in one line."""
    versions = ", ".join(f"{n} {v}" for n, v in setup["versions"].items())
    clock = "CPU time of the process" if setup["clock"] == "cpu" else "wall clock"
    threads = f"{setup['threads']} thread" + ("s" if setup["threads"] > 1 else "")
    return (
        f"{setup['device']}, {setup['cores']} cores, {threads}, {versions}, "
        f"{setup['dtype']}; {clock}."
    )


#: (name, configuration, loop, baseline, target ratio) on a CPU.
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


def targets(setup: dict[str, Any]) -> str:
    """The table of targets and measurements; loops without a measurement are skipped."""
    clock, on_cpu = setup["clock"], setup["kind"] == "cpu"
    rows = {row["name"]: {loop["name"]: loop for loop in row["loops"]}
            for row in setup["configurations"]}  # fmt: skip
    lines = []
    for label, name, replicas, base, target in CPU_TARGETS if on_cpu else GPU_TARGETS:
        loops = rows.get(name, {})
        engine = [n for n in loops if n.startswith("iclbench, ")]
        names = (
            engine if replicas == "best" else [n for n in engine if n == f"iclbench, {replicas}"]
        )
        if names:
            speeds = [ratios(loops[base], loops[n], clock) for n in names]
            best = max(speeds, key=statistics.median)
            lines.append(_target(f"{label}, × {base}", best, target))
    if on_cpu:
        lines += _general_targets(setup, rows)
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True)


def _general_targets(setup: dict[str, Any], rows: dict[str, Any]) -> list[dict[str, str]]:
    """No configuration slower than the plain loop; the fraction of peak; the engine's overhead."""
    clock, lines = setup["clock"], []
    for row in setup["configurations"]:
        plain = rows[row["name"]]["plain loop"]
        speeds = [
            ratios(plain, loop, clock) for loop in row["loops"] if loop["name"].startswith("icl")
        ]
        slowest = min(speeds, key=statistics.median)
        lines.append(_target(f"{row['name']}, slowest R, × plain loop", slowest, 1.0))
        if row["name"] == "transformer 12 × 64":
            loop = rows[row["name"]]["iclbench, R = 1"]
            label = "transformer 12 × 64, fraction of the large product's speed"
            lines.append(_target(label, [fraction_of_peak(row, loop, clock)], 0.6))
            # The engine needs fewer operations, for which the row above gives no credit.
            as_plain = fraction_of_peak(row, {**loop, "flops": plain["flops"]}, clock)
            lines.append(_target("the same, counting the plain loop's operations", [as_plain], 0.6))
        if row["name"] == "transformer 2 × 64":
            share = rows[row["name"]]["iclbench, R = 1"].get("overhead")
            if share is not None:
                lines.append(
                    {
                        "measure": "transformer 2 × 64, engine overhead per step",
                        "target": "3%",
                        "measured": f"{share:.1%}",
                        "": "met" if share <= 0.03 else "missed",
                    }
                )
    return lines


def _target(label: str, values: list[float], target: float) -> dict[str, str]:
    middle = statistics.median(values)
    return {
        "measure": label,
        "target": f"{target:g}",
        "measured": spread(values) if len(values) > 1 else f"{middle:.2f}",
        "": "met" if middle >= target else f"missed by {max(0.01, 1 - middle / target):.0%}",
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.json")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--targets", action="store_true", help="print only the targets")
    part.add_argument("--loops", action="store_true", help="print only the loops")
    arguments = parser.parse_args()
    for path in arguments.files:
        content = json.loads(path.read_text())
        if not arguments.loops:
            print(f"{headline(content)} {measured_on(content)}\n")
            print(targets(content) + "\n")
        for row in [] if arguments.targets else content["configurations"]:
            print_configuration(content, row)


if __name__ == "__main__":
    main()
