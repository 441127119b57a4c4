"""The parts of `python -m benchmarks.gpu`, which return exit codes: 0 done, 3 not yet, 1 failed."""

from __future__ import annotations

import dataclasses
import signal
import sys
import traceback
from collections.abc import Callable

import torch

from iclbench import RecordStore
from iclbench.precision import full_precision

from . import ROOT
from .conditions import conditions
from .configurations import CONFIGURATIONS
from .engine import EngineLoop
from .gpu_agreement import ROWS_FILE, UNFINISHED, compared_rows, was_captured
from .gpu_slice import NOT_YET, Slice
from .loops import makers
from .measured import commit
from .processes import SAVING, ended_in_time, stopped_in_time
from .timing import Clock

#: Models of the rows, on `least-squares`.
ROWS = ("transformer", "baseconv", "linear-transformer", "lsa-tokens")
#: The most seconds of the tests in part 0, and the fewest that many models need there.
TESTING, MANY = 240.0, 180.0
#: The file that says how the tests ended.
TESTED = "tests.json"


def tests(call: Slice) -> int:
    """The tests marked `gpu`; without a GPU they are skipped.

    A short call does not repeat what an earlier one has run on this machine, at this commit.
    """
    source = commit()
    here = {"machine": call.machine, "commit": "" if source.endswith("-dirty") else source}
    before = call.read(TESTED) or {}
    if call.short and here["commit"] and here.items() <= before.items():
        print(f"the tests ended with {before['code']} before, see part-0-tests.txt")
        return int(before["code"])
    # Other files need packages that the machine may lack.
    marked = (p for p in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.gpu" in p.read_text())
    chosen = (path for path in marked if not call.short or "cuda_graph" in path.name)
    files = sorted(str(path.relative_to(ROOT)) for path in chosen)
    # A warning of another version of torch says nothing of the device.
    words = [sys.executable, "-m", "pytest", "-v", "-m", "gpu", "-W", "default",
             "-p", "no:cacheprovider", *files]  # fmt: skip
    with (call.folder / "tests.txt").open("w") as log:
        log.write(f"{call.machine}\n")
        log.flush()
        seconds = min(call.left, TESTING) if call.short else call.left
        # Ctrl-C lets pytest say what failed until then.
        code, was_stopped = stopped_in_time(
            words, seconds - SAVING, signal.SIGINT, stdout=log, stderr=log
        )
        if was_stopped:
            log.write("ran out of time\n")
    call.write(TESTED, {**here, "code": int(code != 0)})
    print("\n".join((call.folder / "tests.txt").read_text().splitlines()[-25:]))
    return int(code != 0)


def agreement(call: Slice) -> int:
    """`python -m benchmarks.gpu_agreement`, again after a row that ended its process.

    A row that this call has no time left for is measured by the next, unless it had all the time.
    """
    words = [sys.executable, "-m", "benchmarks.gpu_agreement", str(call.folder),
             "--device", call.device, *["--short"] * call.short, *["--toy"] * call.toy]  # fmt: skip
    while True:
        before = len(compared_rows(call))
        code = ended_in_time([*words, "--seconds", str(call.left)], call.left)
        rows = compared_rows(call)
        if code is None and len(rows) > before + 1 and rows[-1].get("error") == UNFINISHED:
            call.write(ROWS_FILE, {"machine": call.machine, "rows": rows[:-1]})
        if code in (None, NOT_YET):
            return NOT_YET
        if code == 0 or len(rows) == before:
            return int(code != 0 or not all(row["agrees"] for row in rows))


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
            if is_first and not call.short:
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
    if call.short and call.left < MANY:
        return NOT_YET
    count, steps = (8, 40) if call.toy else (4096, 400)
    configuration = next(c for c in CONFIGURATIONS if c.name == "linear attention 1 × 16")
    configuration = dataclasses.replace(configuration, chunk=20)
    plain = makers(configuration, call.device)["plain loop"]()
    with full_precision(torch.float32):
        engine = EngineLoop(configuration, count, call.device)
        if call.device == "cuda":  # without the comparison of programs
            torch.cuda.reset_peak_memory_stats()
        rates = {}
        for name, loop, models in (("loop", plain, 1), ("engine", engine, count)):
            loop.advance(2 * configuration.chunk)  # the graph is captured
            clock = Clock(call.device)
            loop.advance(steps)
            rates[name] = models * steps / clock.read()[0]
    result = {
        "machine": call.machine,
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
