"""The cases: a mutated record among sound ones, a mutated sweep file, a mutated command line.

A case is determined by its kind and its seed. Each one gets a fresh folder with a secret beside it;
whatever a case changes outside its output folder is a failure.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from invocation import Outcome, invoke, listing
from mutations import (
    HOSTILE_NUMBERS,
    mutate_content,
    mutate_number,
    mutate_text,
    mutate_words,
)

from iclbench import IclbenchError, run
from iclbench.api.names import is_plain_name
from iclbench.api.spec import digest_of, spec_id
from iclbench.runs.objects import Objects
from iclbench.runs.store import read_record
from iclbench.sweeps.files import read_sweep_file, stages_of

#: Seconds that a case may take; most take a few hundredths.
LIMIT = 60
TINY: dict[str, Any] = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4},
                        "eval_prompts": 32}  # fmt: skip
SWEEP = """\
# A small sweep.
out = "results"
replicas = 4

[defaults]
task = "least-squares"
task_args = { dim = 2, examples = [4, 8] }
seeds = 2
eval_prompts = 32

[[grid]]
name = "start"
model = "baseconv"
model_args = { layers = 1, width = 8 }
recipe = "smoke"
recipe_args = { steps = 3, learning_rate = 3e-3 }
task_args = { examples = 4 }

[[grid]]
model = ["zero", "averaging"]
dtype = ["float32", "float64"]

[[grid]]
model = "baseconv"
weights = "@start"

[figure]
x = "task_args.examples"
y = "squared_error"
title = "Errors"

[sizes.large]
grid = [{ seeds = 3 }, {}, {}]
"""
COMMANDS = (
    "run --model zero,averaging --task least-squares --task-args dim=2,examples=4 --seeds 2",
    "run --model transformer --task least-squares --recipe smoke --recipe-args steps=3,batch=2",
    "run --model baseconv --task least-squares --weights gd-causal --weights-args steps=3",
    "run --model zero --task least-squares --dtype float64 --eval-prompts 16 --eval-seed 3",
    "run --model transformer --task least-squares --freeze a.* --perturb 0.1 --metrics squared",
    "ls", "ls --json", "plugins", "describe transformer", "describe least-squares --json",
    "show records", "verify records --all --sample 1", "submit records --to out/boards --check",
    "leaderboard show --out records --format markdown --commands", "leaderboard build out/boards",
    "leaderboard site out/site --from out/boards", "leaderboard figure",
    "leaderboard figure records --x model --file out/figure.html --title T --lines model",
    "leaderboard figure sweep.toml --records records --file out/figure.html --size large",
    "sweep missing.toml --out out/results --workers 2 --size quick --executor local",
    "push records --to ./copy --task least-squares --all --yes", "pull ./copy --out out/pulled",
    "pull datasets/someone/results --max-size 0.1 --no-verify", "push records --to someone/name",
    "export out/data --task least-squares --prompts 16 --task-args dim=2,examples=4 --seed 3",
    "campaign missing.toml --stage boards --hours 0.1 --out out/campaign", "new solver my-solver",
    "tune --model baseconv --task least-squares --trials 3 --budget 1m",
)  # fmt: skip


def make_records(folder: Path) -> Path:
    """The sound records that cases start from: a solver, a construction, a trained model."""
    run(model="zero", **TINY, out=folder)
    run(model="gradient-descent", **{**TINY, "task": "least-squares-prefixes"}, out=folder)
    run(model="baseconv", **TINY, recipe="smoke", seeds=2, out=folder)
    return folder


@contextmanager
def arena(root: Path, records: Path) -> Iterator[Path]:
    """A fresh working folder below `root` with records, a secret beside it, and `out`."""
    work = root / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    shutil.copytree(records, work / "records")
    shutil.copytree(records, work / "out" / "boards" / "records")
    (root / "secret").write_text("secret")
    (work / "sweep.toml").write_text(SWEEP)
    before = Path.cwd()
    os.chdir(work)
    try:
        yield work
    finally:
        os.chdir(before)


def record_case(seed: int, root: Path, records: Path) -> Outcome:
    """A mutated record among sound ones, through one of the verbs that read records."""
    random_ = random.Random(f"record {seed}")
    with arena(root, records) as work:
        state = random_.getstate()
        sound = spoil(work / "records", random_)
        random_.setstate(state)
        spoil(work / "out" / "boards" / "records", random_)
        verb = random_.choice(
            [
                ["show", "records"],
                ["leaderboard", "show", "--out", "records", "--commands"],
                ["verify", "records"],
                ["submit", "records", "--to", "out/new"],
                ["push", "records", "--to", "./out/copy", "--yes"],
                ["pull", "./records", "--out", "out/pulled", "--no-verify"],
                ["leaderboard", "build", "out/boards", "--no-parquet"],
                ["leaderboard", "site", "out/site", "--from", "out/boards"],
                ["leaderboard", "figure", "records", "--x", "model", "--file", "out/f.html"],
            ]
        )
        outcome = guarded(verb, root, work / "out")
        if verb[-1] == "records" and verb[0] in {"show", "verify"}:
            missing = [path for path in sound if not _is_shown(path, verb[0], outcome.out)]
            if missing:
                return replace(outcome, escaped=f"a bad record stopped {missing[0].name}")
        return outcome


def _is_shown(path: Path, verb: str, out: str) -> bool:
    """Whether a verb went on to this sound record."""
    if verb == "verify":
        return f"{path.parent.name}/{path.name}: all " in out
    return read_record(path).command in out


def spoil(folder: Path, random_: random.Random) -> list[Path]:
    """Mutate one record of the folder, or a file that it names; returns the sound records."""
    paths = sorted(folder.glob("*/*.json"))
    path = random_.choice(paths)
    sound = [other for other in paths if other != path]
    kind = random_.random()
    text = path.read_text("utf-8")
    if kind < 0.65:
        content = json.loads(text)
        for _ in range(random_.choice([1, 1, 1, 2, 4])):
            mutate_content(content, random_)
        _seal(path, content)
    elif kind < 0.75:
        path.write_text(mutate_number(text, random_), "utf-8", "surrogatepass")
    elif kind < 0.85:
        data = mutate_text(text, random_).encode("utf-8", "surrogatepass")
        path.write_bytes(data if random_.random() < 0.7 else data + bytes(range(128, 256)))
    elif kind < 0.95:
        _spoil_object(path, random_)
    elif _replace(path, random_):
        return []
    return sound


def _seal(path: Path, content: dict[str, Any]) -> None:
    """Write a record with a digest, an id and a name that fit, wherever they can be made to fit."""
    try:
        if isinstance(content.get("spec"), dict):
            content["id"] = spec_id(content["spec"])
        content["digest"] = digest_of({k: v for k, v in content.items() if k != "digest"})
        name = f"{content['spec']['model']}-{content['id']}.json"
    except (ValueError, TypeError, KeyError, RecursionError):
        name = path.name
    path.unlink()
    path = path.with_name(name) if is_plain_name(name) else path
    path.write_text(json.dumps(content), "utf-8", "surrogatepass")


def _spoil_object(path: Path, random_: random.Random) -> None:
    """Change the bytes or the shape of a file that the record names; digests fit afterwards."""
    record, objects = read_record(path), Objects.beside(path)
    reference = random_.choice(record.files())
    data = bytearray(objects.read(reference))
    for _ in range(random_.choice([0, 1, 8])):
        data[random_.randrange(len(data))] = random_.randrange(256)
    data = data[: random_.choice([len(data), len(data) // 2, 3, 0])]
    data += random_.choice([b"", b"", b"x" * 100, b"\xff" * 8])
    digest = hashlib.sha256(data).hexdigest()
    text = path.read_text("utf-8").replace(reference.sha256, digest)
    content = json.loads(text)
    if random_.random() < 0.3:
        values = content["evaluations"]["main"]["values"]
        shape = values[next(iter(values))]["shape"]
        shape[random_.randrange(len(shape))] = random_.choice(HOSTILE_NUMBERS)
    target = objects.records / "objects" / digest[:2] / f"{digest}.{reference.format}"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(data)
    _seal(path, content)


def _replace(path: Path, random_: random.Random) -> bool:
    """Put something that is no file, or no whole one, in place of a record or an object.

    Returns whether it was an object, which other records may name too.
    """
    is_object = random_.random() < 0.5
    if is_object:
        reference = random_.choice(read_record(path).files())
        path = Objects.beside(path).path(reference)
    path.unlink()
    kind = random_.randrange(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to(path.parents[3] / "secret")
    elif kind == 2:
        path.mkdir()
    elif kind == 3:
        path.touch()
    elif kind == 4:
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(2**40)
    return is_object


def sweep_case(seed: int, root: Path, records: Path) -> Outcome:
    """A mutated sweep file: as a figure, which runs nothing; as a sweep where it is refused."""
    random_ = random.Random(f"sweep {seed}")
    with arena(root, records) as work:
        mutate = random_.choice([mutate_text, mutate_number])
        path = work / "sweep.toml"
        path.write_text(mutate(SWEEP, random_), "utf-8", "surrogatepass")
        words = ["leaderboard", "figure", "sweep.toml", "--records", "records"]
        words += ["--file", "out/figure.html"]
        if random_.random() < 0.5 and _is_refused(path):
            words = ["sweep", "sweep.toml", "--out", "out/results"]
        return guarded(words, root, work / "out")


def _is_refused(path: Path) -> bool:
    try:
        stages_of(read_sweep_file(path))
    except IclbenchError:
        return True
    except Exception:
        return False
    return False


def command_case(seed: int, root: Path, records: Path) -> Outcome:
    """A mutated command line; what would train only says what it would do."""
    random_ = random.Random(f"command {seed}")
    words = mutate_words(random_.choice(COMMANDS).split(), random_)
    words = [word.replace("\0", "?") for word in words if word != "--retrain"]
    if {"run", "campaign", "tune"} & set(words):
        # Twice, since an option may take the first one as its value.
        words += ["--dry-run", "--dry-run"]
    with arena(root, records) as work:
        if "sweep" in words and (work / "sweep.toml").exists():
            (work / "sweep.toml").unlink()
        # What a command line names as its output may be anywhere in the working folder.
        return guarded(words, root, work)


def guarded(words: list[str], root: Path, out: Path) -> Outcome:
    """Run a command line; a file that changed outside `out` becomes the outcome's problem."""
    before = listing(root, out)
    outcome = invoke(words, LIMIT)
    after = listing(root, out)
    changed = sorted(n for n in {**before, **after} if before.get(n) != after.get(n))
    if changed:
        problem = f"written outside its output: {', '.join(changed[:3])}"
        return replace(outcome, escaped=problem)
    return outcome


CASES = {"records": record_case, "sweeps": sweep_case, "commands": command_case}
