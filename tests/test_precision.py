"""Reduced precision is off while a run goes, and restored after it."""

from __future__ import annotations

import pytest
import torch

from iclbench.precision import full_precision


def precision():
    backends = torch.backends
    owners = [backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn]
    owners += [backends.mkldnn.matmul, backends.mkldnn.conv, backends.mkldnn.rnn]
    return [owner.fp32_precision for owner in owners]


def older():
    """What packages read that were written for torch before 2.9."""
    flags = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    return [*flags, torch.get_float32_matmul_precision()]


def reduced_sums():
    """Whether products of half-precision matrices are summed in half precision."""
    matmul = torch.backends.cuda.matmul
    return (
        matmul.allow_fp16_reduced_precision_reduction,
        matmul.allow_bf16_reduced_precision_reduction,
    )


@pytest.fixture
def restored():
    """Leave torch as this test found it."""
    yield
    torch.backends.fp32_precision = torch.backends.mkldnn.conv.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.matmul.fp32_precision = "none"


NEWER = pytest.mark.skipif(not hasattr(torch.backends.cudnn, "conv"), reason="torch before 2.9")


@NEWER
@pytest.mark.parametrize("how", ["default", "high", "medium", "no cudnn", "new", "everywhere"])
def test_reduced_precision_is_off_during_a_run_and_restored_after(how, restored):
    matmul = torch.backends.cuda.matmul
    if how in {"high", "medium"}:
        torch.set_float32_matmul_precision(how)
    if how == "no cudnn":
        torch.backends.cudnn.allow_tf32 = False
    if how == "new":
        matmul.fp32_precision = torch.backends.mkldnn.conv.fp32_precision = "tf32"
    if how == "everywhere":
        torch.backends.fp32_precision = "tf32"
    before = precision()
    assert reduced_sums() == (True, True)
    with full_precision(torch.float64):
        assert set(precision()) == {"ieee"}
        assert reduced_sums() == (False, False)
        assert torch.get_default_dtype() == torch.float64
    assert precision() == before
    assert reduced_sums() == (True, True)
    assert torch.get_default_dtype() == torch.float32


@NEWER
@pytest.mark.parametrize("how", ["highest", "high", "medium"])
def test_the_older_settings_can_be_read_during_a_run(how, restored):
    torch.set_float32_matmul_precision(how)
    before = older()
    with full_precision(torch.float32):
        assert older() == [False, False, "highest"]
    assert older() == before
