"""Have a build of torch for CPUs accept CUDA devices; to be imported before torch."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path


def load_guard() -> None:
    """Compile and load `pretended_cuda.cpp`."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.submodule_search_locations
    torch_folder = Path(spec.submodule_search_locations[0])
    lib = torch_folder / "lib"
    with tempfile.TemporaryDirectory() as folder:
        guard = Path(folder) / "guard.so"
        words = ["c++", "-shared", "-fPIC", "-std=c++20", f"-I{torch_folder / 'include'}",
                 f"-L{lib}", f"-Wl,-rpath,{lib}", "-Wl,--no-as-needed", "-lc10", "-ltorch_cpu",
                 "-o", str(guard), str(Path(__file__).with_name("pretended_cuda.cpp"))]  # fmt: skip
        subprocess.run(words, check=True)
        ctypes.CDLL(str(guard))


load_guard()
