"""The engines are compared on a GPU although one of them fails, or ends its process."""

from __future__ import annotations

import time

import pytest
import torch

from benchmarks import gpu_agreement, gpu_parts
from benchmarks.gpu_agreement import UNFINISHED, compare, compared_rows
from benchmarks.gpu_slice import Slice


@pytest.fixture
def call(tmp_path):
    return Slice("cpu", True, tmp_path, time.monotonic() + 600)


@pytest.fixture
def processes(call, monkeypatch):
    """The commands of the processes that compare, which run in this one."""
    started = []

    def run(words, seconds):
        started.append(words)
        try:
            return compare(call)
        except SystemExit as crash:
            return crash.code

    monkeypatch.setattr(gpu_parts, "ended_in_time", run)
    return started


def losses(case, engine, device):
    if engine == "vmapped":
        raise RuntimeError("no kernel\nand more")
    return engine, None, torch.ones(3, dtype=torch.float64)


def test_the_others_are_compared_where_an_engine_fails(call, processes, monkeypatch):
    monkeypatch.setattr(gpu_agreement, "_losses", losses)
    assert gpu_parts.agreement(call) == 1
    rows = compared_rows(call)
    failed = [row for row in rows if "error" in row]
    assert {row["asked"] for row in failed} == {"vmapped"}
    assert failed[0]["error"].endswith("no kernel")
    assert len(rows) > 2 * len(failed)
    assert len(processes) == 1


def test_another_process_goes_on_where_a_kernel_ends_one(call, processes, monkeypatch):
    def crashing(case, engine, device):
        if engine == "vmapped":
            raise SystemExit(-11)  # nothing is written any more, as after a segmentation fault
        return losses(case, engine, device)

    monkeypatch.setattr(gpu_agreement, "_losses", crashing)
    assert gpu_parts.agreement(call) == 1
    failed = [row for row in compared_rows(call) if not row["agrees"]]
    assert {(row["asked"], row["error"]) for row in failed} == {("vmapped", UNFINISHED)}
    assert len(processes) == len(failed) + 1


def test_a_device_that_a_kernel_has_broken_is_left_to_another_process(call, processes, monkeypatch):
    monkeypatch.setattr(gpu_agreement, "_losses", losses)
    monkeypatch.setattr(gpu_agreement, "gpu_is_usable", lambda: len(compared_rows(call)) != 2)
    assert gpu_parts.agreement(call) == 1
    assert len(processes) == 2


def test_the_part_fails_where_no_process_can_use_the_device(call, monkeypatch):
    monkeypatch.setattr(gpu_parts, "ended_in_time", lambda words, seconds: 1)
    assert gpu_parts.agreement(call) == 1


def test_a_part_without_time_goes_on_in_the_next_call(call, monkeypatch):
    monkeypatch.setattr(gpu_parts, "ended_in_time", lambda words, seconds: None)
    assert gpu_parts.agreement(call) == 3


@pytest.mark.parametrize(("done", "kept"), [(0, 1), (2, 2)])
def test_a_row_that_is_cut_is_measured_again_unless_it_had_all_the_time(
    call, monkeypatch, done, kept
):
    def cut(words, seconds):
        rows = [{"asked": f"engine {i}", "agrees": True} for i in range(done)]
        rows.append({"asked": "slow", "agrees": False, "error": UNFINISHED})
        call.write("agreement.json", {"machine": call.machine, "rows": rows})

    monkeypatch.setattr(gpu_parts, "ended_in_time", cut)
    assert gpu_parts.agreement(call) == 3
    assert len(compared_rows(call)) == kept


def test_rows_of_another_machine_are_left_aside(call, processes, monkeypatch):
    monkeypatch.setattr(gpu_agreement, "_losses", losses)
    call.write("agreement.json", {"machine": {"device": "another"}, "rows": [{"agrees": False}]})
    assert compared_rows(call) == []
    gpu_parts.agreement(call)
    assert all("asked" in row for row in compared_rows(call))
