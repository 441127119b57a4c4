"""One part of what is measured on a GPU, in at most nine minutes; `make gpu PART=n`.

    python -m benchmarks.gpu PART [--device cuda] [--minutes 9] [--out DIR] [--state DIR] [--toy]

0. a little of the next four, in six minutes
1. the tests marked `gpu`
2. agreement of every engine with `plain`
3. the speed benchmark
4. 4,096 one-layer models as one graph
5. rows of the board `least-squares` with an hour of device time per seed

A part writes at most eight files of 16 MB into `--out`: its results, and what the next call needs
to go on. That call finds them in `--state`, so a part that did not end goes on where it stopped.
Exit codes: 0 done, 3 not yet, 1 a test or a comparison failed.
"""

from __future__ import annotations

import os
import shutil
import signal
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from . import argument_parser
from .gpu_parts import PARTS
from .gpu_slice import NOT_YET, Slice

#: The largest file and the most files that a part leaves.
MOST_BYTES, MOST_FILES = 16 * 2**20, 8
#: Seconds for packing what a part leaves.
PACKING = 20.0


def unpack(state: Path, part: int, folder: Path) -> None:
    """Put back what an earlier call has packed."""
    pieces = sorted(state.glob(f"part-{part}.tar.gz.*"))
    if not pieces:
        return
    whole = folder.parent / "state.tar.gz"
    with whole.open("wb") as file:
        for piece in pieces:
            file.write(piece.read_bytes())
    with tarfile.open(whole) as archive:
        archive.extractall(folder, filter="data")
    whole.unlink()


def pack(folder: Path, part: int, out: Path) -> None:
    """Leave the folder in pieces, and its JSON and text files beside them.

    Exits with an error, after writing them, if these are more than eight files.
    """
    out.mkdir(parents=True, exist_ok=True)
    for earlier in out.glob(f"part-{part}*"):
        earlier.unlink()
    whole = folder.parent / "state.tar.gz"
    with tarfile.open(whole, "w:gz") as archive:
        archive.add(folder, ".")
    content = whole.read_bytes()
    for number, start in enumerate(range(0, len(content), MOST_BYTES)):
        piece = out / f"part-{part}.tar.gz.{number:02}"
        piece.write_bytes(content[start : start + MOST_BYTES])
    for path in [*folder.glob("*.json"), *folder.glob("*.txt")]:
        if path.stat().st_size <= MOST_BYTES:
            shutil.copy(path, out / f"part-{part}-{path.name}")
    files = list(out.glob(f"part-{part}*"))
    if len(files) > MOST_FILES:
        raise SystemExit(f"gpu: {len(files)} files in {out}, more than {MOST_FILES}")


def run_part(part: int, make: Callable[[Path], Slice], state: Path, out: Path) -> int:
    """Run a slice of a part and leave what it wrote; returns the exit code."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "work"
        folder.mkdir()
        unpack(state, part, folder)
        call = make(folder)
        try:
            code = PARTS[part](call)
        finally:
            pack(folder, part, out)
    ends = {0: "done", NOT_YET: "not done yet: call it again"}
    print(f"part {part}: {ends.get(code, 'failed')}")
    return code


def main() -> None:
    # The commands of a part are in sessions of their own, and end as at Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argument_parser(__doc__)
    parser.add_argument("part", type=int, choices=list(PARTS))
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--out", type=Path, help="default: OUT, or else the state's folder")
    parser.add_argument("--state", type=Path, default=Path("build/gpu/state"))
    parser.add_argument("--toy", action="store_true", help="as small as a test needs it")
    parser.add_argument("--seeds", type=int, default=2, help="seeds of a row")
    parser.add_argument("--budget", default="gpu-1h", help="training of each seed")
    a = parser.parse_args()
    until = time.monotonic() + max(1.0, 60 * a.minutes - PACKING)
    raise SystemExit(
        run_part(
            a.part,
            lambda folder: Slice(a.device, a.toy, folder, until, a.seeds, a.budget),
            a.state,
            a.out or Path(os.environ.get("OUT") or a.state),
        )
    )


if __name__ == "__main__":
    main()
