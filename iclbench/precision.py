"""Full-precision arithmetic during a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@contextmanager
def full_precision(dtype: torch.dtype) -> Iterator[None]:
    """Switch off TF32 and other reduced precision of float32, and make `dtype` torch's default.

    cuDNN's TF32 is on by default, so a convolution would use it. All settings are restored at the
    end.
    """
    settings = [*_reductions(), *_float32()]
    before = [getattr(owner, name) for owner, name, _ in settings]
    try:
        for owner, name, exact in settings:
            setattr(owner, name, exact)
        with default_dtype(dtype):
            yield
    finally:
        for (owner, name, _), value in zip(settings, before, strict=True):
            setattr(owner, name, value)


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make `dtype` torch's default within a block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _reductions() -> list[tuple[Any, str, Any]]:
    matmul = torch.backends.cuda.matmul
    return [
        (matmul, "allow_fp16_reduced_precision_reduction", False),
        (matmul, "allow_bf16_reduced_precision_reduction", False),
    ]


def _float32() -> list[tuple[Any, str, Any]]:
    """Return the settings of float32's precision, one per backend and operator since torch 2.9.

    The older flags are left alone there: torch refuses to read them once the newer ones are set.
    """
    backends: Any = torch.backends
    if not hasattr(backends.cudnn, "conv"):
        return [(backends.cuda.matmul, "allow_tf32", False), (backends.cudnn, "allow_tf32", False)]
    owners = [backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn]
    owners += [backends.mkldnn.matmul, backends.mkldnn.conv, backends.mkldnn.rnn]
    return [(owner, "fp32_precision", "ieee") for owner in owners]
