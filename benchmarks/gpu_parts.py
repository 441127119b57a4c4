"""The parts of `python -m benchmarks.gpu`, which return exit codes: 0 done, 3 not yet, 1 failed."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, get_args

import torch

from iclbench import RecordStore, RunSpec
from iclbench.api.config import parse_config
from iclbench.api.errors import first_line
from iclbench.devices import torch_build
from iclbench.precision import DTYPES, full_precision
from iclbench.runs.models import initial_module
from iclbench.runs.plan import Plan, resolve
from iclbench.training.gradients.choice import EngineName
from iclbench.training.loop import Training
from iclbench.training.state import Replica

from . import ROOT
from .conditions import conditions
from .configurations import CONFIGURATIONS
from .engine import EngineLoop
from .loops import makers
from .processes import SAVING, ended_in_time, stopped_in_time
from .timing import Clock

if TYPE_CHECKING:
    from .gpu import Slice

NOT_YET = 3

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
#: Models of the rows, on `least-squares`.
ROWS = ("transformer", "baseconv", "linear-transformer", "lsa-tokens")
#: Seconds that an engine may take, which compiles for the first time.
COMPARING = 90.0


def machine(device: str) -> dict[str, str]:
    """The device and the versions that a result depends on."""
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    return {"device": name, "build": torch_build()}


def tests(call: Slice) -> int:
    """The tests marked `gpu`; without a GPU they are skipped."""
    # Other files need packages that the machine may lack.
    marked = (p for p in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.gpu" in p.read_text())
    chosen = (path for path in marked if not call.short or "cuda_graph" in path.name)
    files = sorted(str(path.relative_to(ROOT)) for path in chosen)
    # A warning of another version of torch says nothing of the device.
    words = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-W", "default",
             "-p", "no:cacheprovider", *files]  # fmt: skip
    with (call.folder / "tests.txt").open("w") as log:
        log.write(f"{machine(call.device)}\n")
        log.flush()
        code = ended_in_time(words, call.left, stdout=log, stderr=log)
        if code is None:
            log.write("ran out of time\n")
            return 1
    print("\n".join((call.folder / "tests.txt").read_text().splitlines()[-25:]))
    return int(code != 0)


def agreement(call: Slice) -> int:
    """Thirty steps of each model by each engine against `plain`: the losses must agree.

    What compiles takes longest, and comes last.
    """
    result = call.read("agreement.json") or {"machine": machine(call.device), "rows": []}
    rows = result["rows"]
    known = {(r["model"], r["dtype"], r["replicas"], r["asked"]) for r in rows}
    quick = tuple(e for e in get_args(EngineName) if e not in {"plain", "compiled"})
    groups = [("graph",)] if call.short else [quick, ("compiled",)]
    for asked, (model, dtype, replicas) in itertools.product(groups, _cases(call)):
        left = [engine for engine in asked if (model, dtype, replicas, engine) not in known]
        if not left:
            continue
        expected = None
        for engine in left:
            if call.left < COMPARING and rows:
                return NOT_YET
            row = {"model": model, "dtype": dtype, "replicas": replicas, "asked": engine}
            try:
                if expected is None:
                    expected = _losses(model, dtype, replicas, "plain", call.device)[2]
                row |= _compared(row, expected, call.device)
            except Exception as error:  # the other rows say whether it is the device
                row |= {"agrees": False, "error": first_line(error)}
            rows.append(row)
            print(row, flush=True)
            call.write("agreement.json", result)
    return int(not all(row["agrees"] for row in rows))


def _compared(row: dict[str, Any], expected: torch.Tensor, device: str) -> dict[str, Any]:
    """How the losses of a row's engine differ from those of `plain`."""
    asked = row["asked"]
    used, note, losses = _losses(row["model"], row["dtype"], row["replicas"], asked, device)
    difference = float(((losses - expected) / expected).abs().max())
    agrees = difference < AGREE[row["dtype"]] and was_captured(asked, used, device)
    return {"used": used, "note": note, "difference": difference, "agrees": agrees}


def was_captured(asked: str, used: str, device: str) -> bool:
    """Whether a graph was captured, or a program compiled, where that was asked of a GPU."""
    return device == "cpu" or asked not in {"graph", "compiled"} or asked in used


def _cases(call: Slice) -> Iterator[tuple[str, str, int]]:
    for dtype in AGREE:
        for replicas in (4,) if call.short else (1, 4):
            for model in list(COMPARED)[2:3] if call.toy else COMPARED:
                yield model, dtype, replicas


def _losses(
    model: str, dtype: str, replicas: int, engine: EngineName, device: str
) -> tuple[str, str | None, torch.Tensor]:
    """The engine that was used, why it was not another, and the loss curve of a training."""
    torch._dynamo.reset()  # else it compiles only the first few models, and runs the others
    task, model_args = COMPARED[model]
    plan = _plan(
        model,
        task,
        model_args,
        {"steps": 30, "batch": 8, "chunk": 5},
        replicas=replicas,
        dtype=dtype,
    )
    with full_precision(DTYPES[dtype]):
        training = _training(plan, replicas, device, engine)
        trained = training.run(None, lambda step, loss: None)
    return training.engine, training.note, torch.tensor(trained.curve, dtype=torch.float64)


def _plan(
    model: str,
    task: str,
    model_args: dict[str, Any],
    recipe_args: dict[str, Any],
    *,
    replicas: int,
    dtype: str,
) -> Plan:
    request = {"model": model, "task": task, "model_args": model_args, "recipe": "smoke",
               "recipe_args": recipe_args, "seeds": replicas, "dtype": dtype}  # fmt: skip
    return resolve(parse_config(RunSpec, request, "gpu"))


def _training(plan: Plan, replicas: int, device: str, engine: EngineName) -> Training:
    assert plan.recipe is not None
    dtype = DTYPES[plan.spec.dtype]
    modules = [initial_module(plan, seed).to(dtype) for seed in range(replicas)]
    members = [Replica(seed, 1e-3) for seed in range(replicas)]
    place = torch.device(device)
    return Training(
        modules, members, plan.task, plan.recipe, device=place, dtype=dtype, engine=engine
    )


def speed(call: Slice) -> int:
    """`python -m benchmarks`, one configuration after another.

    One that a whole call is too short for is left out by the calls that follow. One that fails is
    tried again by the next call, after the others.
    """
    path = call.folder / "speed.json"
    _begin_anew_elsewhere(call)
    only = "lsa, 1 layer" if call.toy else "transformer 2 × 64" if call.short else None
    chosen = [c for c in CONFIGURATIONS if only in {None, c.name}]
    quick = ["--quick"] if call.toy or call.short else []
    too_slow = call.read("too_slow.json") or []
    is_first, failed = True, []
    for configuration in chosen:
        content = call.read("speed.json") or {"configurations": []}
        measured = {row["name"] for row in content["configurations"]}
        if configuration.name in measured.union(too_slow):
            continue
        words = [sys.executable, "-m", "benchmarks", "--device", call.device, "--json", str(path),
                 "--only", configuration.name, *quick]  # fmt: skip
        code = ended_in_time(words, call.left)
        if code is None:
            if is_first:
                call.write("too_slow.json", [*too_slow, configuration.name])
            return NOT_YET
        failed += [configuration.name] if code else []
        is_first = False
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(too_slow or failed))


def _begin_anew_elsewhere(call: Slice) -> None:
    """Leave speeds that were measured on another machine, or by other versions, aside."""
    content = call.read("speed.json")
    here = conditions(call.device, quick=call.toy or call.short)
    if content and any(content.get(name) != value for name, value in here.items()):
        for name in ("speed.json", "too_slow.json"):
            (call.folder / name).unlink(missing_ok=True)


def many(call: Slice) -> int:
    """4,096 one-layer models as one graph, beside a loop over one of them."""
    count, steps = (8, 40) if call.toy else (4096, 400)
    configuration = next(c for c in CONFIGURATIONS if c.name == "linear attention 1 × 16")
    configuration = dataclasses.replace(configuration, chunk=20)
    plain = makers(configuration, call.device)["plain loop"]()
    with full_precision(torch.float32):
        engine = EngineLoop(configuration, count, call.device)
        rates = {}
        for name, loop, models in (("loop", plain, 1), ("engine", engine, count)):
            loop.advance(2 * configuration.chunk)  # the graph is captured
            clock = Clock(call.device)
            loop.advance(steps)
            rates[name] = models * steps / clock.read()[0]
    result = {
        "machine": machine(call.device),
        "models": count,
        "engine": engine.training.engine,
        "note": engine.note,
        "model_steps_per_second": rates["engine"],
        "loop_steps_per_second": rates["loop"],
        "ratio": rates["engine"] / rates["loop"],
        "memory_bytes": torch.cuda.max_memory_allocated() if call.device == "cuda" else None,
    }
    call.write("many.json", result)
    print(result)
    return int(not was_captured("graph", engine.training.engine, call.device))


def rows(call: Slice) -> int:
    """Rows of `least-squares`, one run after another; a run that is stopped saves a checkpoint."""
    out = call.folder / "results"
    models = ("lsa",) if call.toy else ROWS
    failed = []
    small = ["--task-args", "dim=2,examples=4", "--eval-prompts", "32"] if call.toy else []
    for model in models:
        if any(out.glob(f"least-squares/{model}-*.json")):
            continue
        if call.left < (1 if call.toy else 60):
            return NOT_YET
        words = [sys.executable, "-m", "iclbench", "run", "--model", model, "--task",
                 "least-squares", *small, "--budget", call.budget, "--seeds", str(call.seeds),
                 "--device", call.device, "--out", str(out)]  # fmt: skip
        code, was_stopped = stopped_in_time(words, call.left - (0 if call.toy else SAVING))
        if code and was_stopped:
            return NOT_YET
        failed += [model] if code else []
    print(f"{len(list(RecordStore(out).paths()))} records")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


def glance(call: Slice) -> int:
    """A little of parts 1 to 4, for whoever has a GPU for minutes: graphs first."""
    call = dataclasses.replace(call, short=True)
    codes = [_code_of(part, call) for part in (tests, agreement, many, speed)]
    return 1 if 1 in codes else max(codes)


def _code_of(part: Callable[[Slice], int], call: Slice) -> int:
    """A part's exit code, 1 where it raises: the others are still wanted."""
    try:
        return part(call)
    except (Exception, SystemExit):
        traceback.print_exc()
        return 1


PARTS: dict[int, Callable[[Slice], int]] = {
    0: glance, 1: tests, 2: agreement, 3: speed, 4: many, 5: rows
}  # fmt: skip
