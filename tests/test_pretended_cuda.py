"""The tests marked `gpu` on a device that only says it is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

TESTS = Path(__file__).parent
#: Those of compiled code and of memory need the device; of others, one model is enough here.
FILES = ("training/test_cuda_graph.py", "training/test_loop.py",
         "training/test_cuda_graph_models.py", "runs/test_run.py")  # fmt: skip

CHOSEN = "not compiled and not (agree and baseconv)"


@pytest.mark.slow
@pytest.mark.skipif(torch.version.cuda is not None, reason="this build of torch knows CUDA devices")
@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_gpu_tests_pass_on_a_pretended_device():
    words = [sys.executable, "-m", "pytest", "-q", "-p", "pretending", "-p", "no:cacheprovider",
             "-m", "gpu", "-k", CHOSEN, *(str(TESTS / file) for file in FILES)]  # fmt: skip
    done = subprocess.run(
        words, cwd=TESTS.parent, env={**os.environ, "PYTHONPATH": str(TESTS)}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout.splitlines()[-1]
