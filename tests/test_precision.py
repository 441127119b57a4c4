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


@pytest.mark.skipif(not hasattr(torch.backends.cudnn, "conv"), reason="torch before 2.9")
@pytest.mark.parametrize("how", ["default", "legacy", "new"])
def test_reduced_precision_is_off_during_a_run_and_restored_after(how):
    matmul = torch.backends.cuda.matmul
    if how == "legacy":
        torch.set_float32_matmul_precision("medium")
    if how == "new":
        matmul.fp32_precision = torch.backends.mkldnn.conv.fp32_precision = "tf32"
    before = precision()
    try:
        assert matmul.allow_bf16_reduced_precision_reduction
        with full_precision(torch.float64):
            assert set(precision()) == {"ieee"}
            assert not matmul.allow_bf16_reduced_precision_reduction
            assert torch.get_default_dtype() == torch.float64
        assert precision() == before
        assert matmul.allow_bf16_reduced_precision_reduction
        assert torch.get_default_dtype() == torch.float32
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.backends.mkldnn.conv.fp32_precision = "none"
