"""Devices: what a record says of the environment, and which build of torch is tested."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import weakref

import pytest
import torch

from iclbench import UsageError
from iclbench.devices import (
    cpu_name,
    environment,
    find_device,
    free_memory,
    require_devices,
    torch_build,
)
from iclbench.precision import denormals_as_zero

CPU = torch.device("cpu")


def test_workers_need_a_device_that_exists_and_no_number(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    require_devices("cuda:1", 1)
    require_devices("cuda", 2)
    with pytest.raises(UsageError, match="several workers use one GPU each; give --device cuda"):
        require_devices("cuda:1", 2)
    with pytest.raises(UsageError, match="'cuda:7' does not exist"):
        require_devices("cuda:7", 1)
    require_devices("cuda:7", 1, remote=True)


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


def keeps_denormals() -> bool:
    return bool(torch.tensor(1e-40, dtype=torch.float32).mul(1.0))


def test_denormal_numbers_are_zero_within_a_block_and_where_they_were_before():
    assert keeps_denormals()
    with denormals_as_zero():
        assert not keeps_denormals()
        with denormals_as_zero():
            pass
        assert not keeps_denormals()
    assert keeps_denormals()


class Cycle:
    def __init__(self):
        self.method = self.__init__


def test_objects_that_refer_to_each_other_are_freed():
    cycle = weakref.ref(Cycle())
    free_memory()
    assert cycle() is None


def test_a_gpu_with_a_number_becomes_the_current_one(monkeypatch):
    current = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    assert find_device("cuda") == torch.device("cuda")
    assert find_device("cpu") == CPU
    assert current == []
    assert find_device("cuda:1") == torch.device("cuda:1")
    assert find_device("cuda:0", make_current=False) == torch.device("cuda:0")
    assert current == [torch.device("cuda:1")]
    with pytest.raises(UsageError, match=r"'cuda:2' does not exist \(2 GPUs\)"):
        find_device("cuda:2")
    assert len(current) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("processor\t: 0\nmodel name\t: AMD EPYC 9R14\n", "AMD EPYC 9R14"), ("Features: fp\n", None)],
)
def test_a_record_names_the_cpu_where_the_system_does(text, expected, monkeypatch):
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_: text)
    monkeypatch.setattr("platform.processor", platform.machine)
    assert cpu_name.__wrapped__() == expected


def test_the_processor_has_no_number():
    with pytest.raises(UsageError, match="'cpu:0' is not supported; use auto, cpu or cuda"):
        find_device("cpu:0")
