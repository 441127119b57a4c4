"""Optimizers at equal wall time, learning the least-squares gradient to high precision.

    python -m benchmarks.optimizers --minutes 5 --threads 1

Trains BaseConv (3 layers, no LayerNorm, no MLP) on `gradient` with every optimizer for the given
time. The speed is measured first, to set the number of steps of the cosine schedule. Gauss–Newton
and L-BFGS start after a third of the time with Adam, since their steps do not help earlier. Prints
the errors in the training dtype, and in float32 with the same weights rounded.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from iclbench import Record, run

from . import argument_parser
from .measured import number

ADAM: dict[str, Any] = {"optimizer_args": {"eps": 1e-16}}
PLAIN: dict[str, Any] = {**ADAM, "gradient_memory": 0}
SOAP: dict[str, Any] = {
    "optimizer": "soap",
    "optimizer_args": {"eps": 1e-16},
    "learning_rate": 3e-3,
    "gradient_memory": 0,
}
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "adam": ("float32", PLAIN),
    "adam, running mean": ("float32", ADAM),
    "adam, running mean, adaptive": (
        "float32",
        {**ADAM, "schedule": "adaptive", "decay_every": 300, "measure_every": 100},
    ),
    "adam, running mean, float64": ("float64", ADAM),
    "soap": ("float32", SOAP),
    "soap, float64": ("float64", SOAP),
    "gauss-newton, float64": ("float64", {}),
    "lbfgs, float64": ("float64", {"batch": 8192, "optimizer_args": {"iterations": 100}}),
}
#: Recipes for the last two thirds of the time, and the number of steps that measure their speed.
SECOND_ORDER = {"gauss-newton": 2, "lbfgs": 1}


class Bench:
    """The problem, and the folder of its records."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.arguments, self.folder = arguments, folder
        self.model_args = {"layers": 3, "width": arguments.width, "init_std": 0.1}
        self.task_args = {"dim": arguments.dim, "examples": arguments.examples, "iterates": 100}

    def train(
        self,
        dtype: str,
        steps: int,
        name: str = "precision",
        init: str | None = None,
        **recipe: Any,
    ) -> Record:
        """Run the recipe `name`."""
        base = {} if init else {"schedule": "cosine", "batch": 256}
        return run(
            model="baseconv",
            task="gradient",
            task_args=self.task_args,
            model_args=self.model_args,
            recipe=name,
            recipe_args={**base, **recipe, "steps": steps},
            init=init,
            seeds=self.arguments.seeds,
            dtype=dtype,
            out=self.folder,
            force=True,
        )

    def for_seconds(self, seconds: float, dtype: str, trial: int, **options: Any) -> Record:
        """Run for about this long; `trial` steps measure the speed."""
        pilot = self.train(dtype, trial, **options).training
        assert pilot is not None
        return self.train(dtype, max(1, round(seconds * pilot.steps / pilot.seconds)), **options)

    def compare(self, name: str) -> dict[str, object]:
        """The table row of one optimizer."""
        seconds = 60 * self.arguments.minutes
        dtype, recipe = OPTIMIZERS[name]
        second, _, _ = name.partition(",")
        if second in SECOND_ORDER:
            first = self.for_seconds(seconds / 3, dtype, 200, **ADAM)
            recipe = {**recipe, "name": second, "init": self.weights(first)}
            record = self.for_seconds(2 * seconds / 3, dtype, SECOND_ORDER[second], **recipe)
        else:
            record = self.for_seconds(seconds, dtype, 200, **recipe)
        assert record.training is not None
        rounded = run(
            model="baseconv",
            task="gradient",
            task_args=self.task_args,
            weights=self.weights(record),
            dtype="float32",
            out=self.folder,
            force=True,
        )
        return {
            "optimizer": name,
            "steps": record.training.steps,
            "time": f"{record.training.seconds:.0f} s",
            **_errors(record, ""),
            **_errors(rounded, " (float32)"),
        }

    def weights(self, record: Record) -> str:
        """The weights file of a record."""
        assert record.weights_file is not None
        (path,) = self.folder.rglob(record.weights_file.name)
        return str(path)


def _errors(record: Record, suffix: str) -> dict[str, str]:
    return {
        f"{short}{suffix}": ", ".join(number(seed[name].median) for seed in record.main.seeds)
        for short, name in (("gradient", "gradient_error"), ("iterated", "weight_error"))
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dim", type=int, default=3)
    parser.add_argument("--examples", type=int, default=8)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(OPTIMIZERS), choices=list(OPTIMIZERS))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(
        f"torch {torch.__version__}, CPU, {arguments.threads} threads; D = {arguments.dim}, "
        f"N = {arguments.examples}, width {arguments.width}; medians over 2,048 prompts for each "
        f"of {arguments.seeds} seeds, trained as one program\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, Path(folder))
        rows = []
        for name in arguments.only:
            rows.append(bench.compare(name))
            print(tabulate(rows, headers="keys", tablefmt="pipe", disable_numparse=True) + "\n")


if __name__ == "__main__":
    main()
