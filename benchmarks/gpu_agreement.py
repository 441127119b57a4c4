"""Thirty steps of each model by each engine against `plain`: the losses must agree.

    python -m benchmarks.gpu_agreement DIR [--device cuda] [--seconds 500] [--short] [--toy]

A kernel that fails may leave the device unusable for its process, or end that. So a row is written
to DIR/agreement.json as failed before it is measured, and another process goes on with the next.
Exit codes: 0 done, 3 not yet, 1 the device can't be used any more.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch

from iclbench import RunSpec
from iclbench.api.config import parse_config
from iclbench.api.errors import first_line
from iclbench.devices import gpu_is_usable
from iclbench.precision import DTYPES, full_precision
from iclbench.runs.models import initial_module
from iclbench.runs.plan import Plan, resolve
from iclbench.training.gradients.choice import EngineName
from iclbench.training.loop import Training
from iclbench.training.state import Replica

from . import argument_parser
from .gpu_slice import NOT_YET, Slice

#: The models whose engines are compared, on small prompts.
COMPARED = {
    "transformer": ("least-squares-prefixes", {"layers": 2, "width": 16}),
    "baseconv": ("least-squares-prefixes", {"layers": 2, "width": 16}),
    "lsa": ("least-squares", {"layers": 2}),
    "elsa": ("least-squares", {"layers": 1}),
    "linear-transformer": ("linear-system", {"layers": 3}),
    "gd-transformer": ("categorical", {"blocks": 2}),
}
#: The largest relative difference of losses after thirty steps, by dtype.
AGREE = {"float64": 1e-9, "float32": 1e-3}
#: Seconds that an engine may take, which compiles for the first time.
COMPARING = 90.0
#: The name of the file, and the error of a row in it while that is measured.
ROWS_FILE, UNFINISHED = "agreement.json", "its process ended"


class Case(NamedTuple):
    """A training that every engine repeats."""

    model: str
    dtype: str
    replicas: int


def compared_rows(call: Slice) -> list[dict[str, Any]]:
    """The rows that were measured on this machine, those included that ended their process."""
    content = call.read(ROWS_FILE)
    return content["rows"] if content and content["machine"] == call.machine else []


def compare(call: Slice) -> int:
    """Measure the rows that are left; returns the exit code."""
    rows = compared_rows(call)
    known = {(row["model"], row["dtype"], row["replicas"], row["asked"]) for row in rows}
    expected: dict[Case, torch.Tensor] = {}
    for case, engine in _rows(call):
        if (*case, engine) in known:
            continue
        if call.left < COMPARING and rows:
            return NOT_YET
        row = {**case._asdict(), "asked": engine}
        rows.append(row | {"agrees": False, "error": UNFINISHED})
        call.write(ROWS_FILE, {"machine": call.machine, "rows": rows})
        rows[-1] = row | _compared(case, engine, expected, call.device)
        call.write(ROWS_FILE, {"machine": call.machine, "rows": rows})
        print(rows[-1], flush=True)
        if not gpu_is_usable():
            return 1
    return 0


def _rows(call: Slice) -> Iterator[tuple[Case, EngineName]]:
    """Every case by every engine but `plain`. What compiles takes longest, and comes last."""
    quick = tuple(e for e in get_args(EngineName) if e not in {"plain", "compiled"})
    groups: list[tuple[Any, ...]] = [("graph",)] if call.short else [quick, ("compiled",)]
    models = list(COMPARED)[2:3] if call.toy else list(COMPARED)
    replicas = (4,) if call.short else (1, 4)
    for engines in groups:
        for dtype, count, model in itertools.product(AGREE, replicas, models):
            yield from ((Case(model, dtype, count), engine) for engine in engines)


def _compared(
    case: Case, asked: EngineName, expected: dict[Case, torch.Tensor], device: str
) -> dict[str, Any]:
    """How the losses of an engine differ from those of `plain`, which `expected` keeps."""
    try:
        if case not in expected:
            expected[case] = _losses(case, "plain", device)[2]
        used, note, losses = _losses(case, asked, device)
    except Exception as error:  # the other rows say whether it is the device
        return {"agrees": False, "error": first_line(error)}
    difference = float(((losses - expected[case]) / expected[case]).abs().max())
    agrees = difference < AGREE[case.dtype] and was_captured(asked, used, device)
    return {"used": used, "note": note, "difference": difference, "agrees": agrees}


def was_captured(asked: str, used: str, device: str) -> bool:
    """Whether a graph was captured, or a program compiled, where that was asked of a GPU."""
    return device == "cpu" or asked not in {"graph", "compiled"} or asked in used


def _losses(case: Case, engine: EngineName, device: str) -> tuple[str, str | None, torch.Tensor]:
    """The engine that was used, why it was not another, and the loss curve of a training."""
    torch._dynamo.reset()  # else it compiles only the first few models, and runs the others
    with full_precision(DTYPES[case.dtype]):
        training = _training(case, _plan(case), device, engine)
        trained = training.run(None, lambda step, loss: None)
    return training.engine, training.note, torch.tensor(trained.curve, dtype=torch.float64)


def _plan(case: Case) -> Plan:
    task, model_args = COMPARED[case.model]
    request = {"model": case.model, "task": task, "model_args": model_args, "recipe": "smoke",
               "recipe_args": {"steps": 30, "batch": 8, "chunk": 5}, "seeds": case.replicas,
               "dtype": case.dtype}  # fmt: skip
    return resolve(parse_config(RunSpec, request, "gpu"))


def _training(case: Case, plan: Plan, device: str, engine: EngineName) -> Training:
    assert plan.recipe is not None
    dtype, seeds = DTYPES[case.dtype], range(case.replicas)
    return Training(
        [initial_module(plan, seed).to(dtype) for seed in seeds],
        [Replica(seed, 1e-3) for seed in seeds],
        plan.task,
        plan.recipe,
        device=torch.device(device),
        dtype=dtype,
        engine=engine,
    )


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--short", action="store_true", help="graphs of four replicas alone")
    parser.add_argument("--toy", action="store_true", help="as small as a test needs it")
    a = parser.parse_args()
    until = time.monotonic() + a.seconds
    raise SystemExit(compare(Slice(a.device, a.toy, a.folder, until, short=a.short)))


if __name__ == "__main__":
    main()
