"""Full-precision arithmetic while a run goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@contextmanager
def full_precision(dtype: torch.dtype) -> Iterator[None]:
    """Switch off TF32 and reduced-precision reductions and make `dtype` torch's default.

    cuDNN's TF32 is on by default, so a convolution would use it unasked. All is restored after.
    """
    matmul = torch.backends.cuda.matmul
    flags: list[tuple[Any, str]] = [
        (matmul, "allow_fp16_reduced_precision_reduction"),
        (matmul, "allow_bf16_reduced_precision_reduction"),
        (torch.backends.cudnn, "allow_tf32"),
    ]
    before = [getattr(owner, name) for owner, name in flags]
    matmul_before = torch.get_float32_matmul_precision()
    dtype_before = torch.get_default_dtype()
    try:
        for owner, name in flags:
            setattr(owner, name, False)
        torch.set_float32_matmul_precision("highest")
        torch.set_default_dtype(dtype)
        yield
    finally:
        for (owner, name), value in zip(flags, before, strict=True):
            setattr(owner, name, value)
        torch.set_float32_matmul_precision(matmul_before)
        torch.set_default_dtype(dtype_before)
