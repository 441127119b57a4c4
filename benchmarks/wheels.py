"""Wheels for a GPU machine without a network: those of our dependencies that it lacks.

    python -m benchmarks.wheels FOLDER

The machine has Python 3.12, torch, numpy, scipy, pandas and pyarrow with their own dependencies.
Everything else that `python -m benchmarks.gpu` needs is downloaded in the version that is installed
here, and a wheel has the metadata of iclbench, which name its plugins: its code is that of the
source tree. Writes the wheels' sizes to `benchmarks/results/gpu-wheels.json`, by which a test sees
when a new dependency no longer fits. Exits with an error if wheels and source tree are too large
together.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from . import ROOT, argument_parser

#: What the machine has, each with its dependencies.
GIVEN = ("torch", "numpy", "scipy", "pandas", "pyarrow")
#: Dependencies that no part imports: of figures, graders, downloads of data.
UNUSED = ("plotly", "openai", "datasets", "hf-xet")
#: What the tests and the field's loop need.
ALSO = ("pytest", "hypothesis", "transformers")
#: Dependencies of what the machine has that may be too old for the others.
NEWER = ("typing-extensions",)
PYTHON, PLATFORMS = "3.12", ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
#: The most bytes of the source tree and the wheels.
MOST_BYTES = 50 * 2**20
#: What no part reads.
LEFT_OUT = ("leaderboards", "tasks/iclbench_imagenet/fashion-mnist")
SIZES = ROOT / "benchmarks" / "results" / "gpu-wheels.json"


def missing() -> list[str]:
    """The distributions to bring, by name."""
    given = set(closure(GIVEN)) - set(NEWER)
    return sorted(set(closure(["iclbench", *ALSO])) - given - {"iclbench"})


def closure(names: Iterable[str]) -> Iterator[str]:
    """The distributions and all that they need, as far as they are installed here."""
    seen: set[str] = set()
    waiting: list[str] = [canonicalize_name(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name not in seen and name not in UNUSED:
            seen.add(name)
            yield name
            waiting += requirements(name)


def requirements(name: str) -> list[str]:
    """What a distribution needs on the machine, without extras; [] if it is not installed here."""
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    machine = {"python_version": PYTHON, "python_full_version": f"{PYTHON}.3", "extra": "",
               "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix",
               "platform_machine": "x86_64", "implementation_name": "cpython",
               "platform_python_implementation": "CPython"}  # fmt: skip
    needs = [Requirement(line) for line in lines]
    return [canonicalize_name(r.name) for r in needs if not r.marker or r.marker.evaluate(machine)]


def download(folder: Path) -> None:
    """Fill the folder; wheels of the installed versions stay, and others are deleted."""
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--quiet"]
    platforms = [f"--platform={name}_x86_64" for name in PLATFORMS]
    versions = {name: metadata.version(name) for name in missing()}
    delete_outdated(folder, versions)
    wanted = [f"{name}=={version}" for name, version in versions.items()]
    subprocess.run(
        [*pip, "download", "--no-deps", "--only-binary=:all:", f"--python-version={PYTHON}",
         "--implementation=cp", *platforms, "--dest", str(folder), *wanted],
        check=True,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run(
            [*pip, "wheel", "--no-deps", "--wheel-dir", temporary, str(ROOT)], check=True
        )
        (wheel,) = Path(temporary).glob("*.whl")
        keep_metadata(wheel, folder / wheel.name)


def delete_outdated(folder: Path, versions: Mapping[str, str]) -> None:
    """Delete the wheels that are not of these versions: pip refuses two of one distribution."""
    kept = {(name, Version(version)) for name, version in versions.items()}
    for path in folder.glob("*.whl"):
        name, version, *_ = parse_wheel_filename(path.name)
        if (name, version) not in kept:
            path.unlink()


def keep_metadata(wheel: Path, path: Path) -> None:
    """Write a wheel that has the metadata of another and no code."""
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(path, "w") as target:
        names = [n for n in source.namelist() if ".dist-info/" in n and "/RECORD" not in n]
        for name in names:
            target.writestr(name, source.read(name))
        record = f"{names[0].partition('/')[0]}/RECORD"
        target.writestr(record, "".join(f"{name},,\n" for name in (*names, record)))


def tree_bytes() -> int:
    """The size of the tracked files without `LEFT_OUT`."""
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--", ".", *(f":!{n}" for n in LEFT_OUT)]
    names = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    paths = [ROOT / name for name in names.split("\0") if name]
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    download(folder)
    paths = sorted(folder.glob("*.whl"))
    sizes = {canonicalize_name(p.name.partition("-")[0]): p.stat().st_size for p in paths}
    tree = tree_bytes()
    print(
        f"{len(sizes)} wheels in {folder}: {sum(sizes.values()) / 2**20:.1f} MiB; the tree without "
        f"{' and '.join(LEFT_OUT)}: {tree / 2**20:.1f} MiB"
    )
    if sum(sizes.values()) + tree > MOST_BYTES:
        raise SystemExit(f"wheels: together more than {MOST_BYTES / 2**20:.0f} MiB")
    SIZES.write_text(json.dumps(sizes, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
