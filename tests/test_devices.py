"""Devices: what a record says of the environment, and which build of torch is tested."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from iclbench.devices import environment, torch_build

CPU = torch.device("cpu")


@pytest.mark.parametrize("version", ["2.13.0+cu130", "2.13.0+cpu", "2.13.0"])
def test_a_record_keeps_the_full_build_of_torch(monkeypatch, version):
    """The metadata of a registry's CUDA build says 2.13.0, the build itself 2.13.0+cu130."""
    monkeypatch.setattr(torch, "__version__", version)
    assert environment(CPU).versions["torch"] == version


def test_versions_are_plain_text():
    versions = environment(CPU).versions
    assert {"python", "iclbench", "torch", "numpy", "scipy"} == set(versions)
    assert {type(version) for version in versions.values()} == {str}
    json.dumps(versions)


@pytest.mark.parametrize(("cuda", "build"), [("13.0", "(CUDA 13.0)"), (None, "(CPU build)")])
def test_the_tested_build_is_named(monkeypatch, cuda, build):
    monkeypatch.setattr(torch.version, "cuda", cuda)
    assert torch_build().endswith(f"torch {torch.__version__} {build}")


def test_ci_prints_the_build():
    command = [sys.executable, "-m", "iclbench.devices"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == torch_build() + "\n"
