"""Full-precision arithmetic during a run, whatever the caller's settings of torch are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

import torch

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@contextmanager
def full_precision(dtype: torch.dtype) -> Iterator[None]:
    """Switch off TF32 and other reduced precision of float32, and make `dtype` torch's default.

    cuDNN's TF32 is on by default, so a convolution would use it. `no_grad`, `inference_mode`,
    autocast and a default device of the caller do not apply within the block. All settings are
    restored at the end.
    """
    settings = [s for s in (*_older(), *_reductions(), *_float32()) if s.is_readable()]
    before = [setting.read() for setting in settings]
    try:
        for setting in settings:
            setting.write(setting.exact)
        with default_modes(), default_dtype(dtype):
            yield
    finally:
        for setting, value in zip(settings, before, strict=True):
            setting.write(value)


@contextmanager
def default_modes() -> Iterator[None]:
    """Within a block, let torch compute as in a process that has switched nothing on or off."""
    with ExitStack() as modes:
        # Inference mode, autocast and a device cost time at every operation: none in vain.
        if torch.is_inference_mode_enabled():
            modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.enable_grad())
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                modes.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":
            modes.enter_context(torch.device("cpu"))
        yield


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Let this thread's arithmetic on a CPU round numbers below the dtype's smallest normal to 0.

    Some processors compute many times slower with such numbers, and attention weights and
    optimizer moments shrink to them in training. torch's other threads, between which it divides
    large operators, keep the mode in which they began: never this one, since they begin before.
    """
    _start_threads(torch.get_num_threads())
    # torch has no getter for this setting.
    before = not torch.tensor(1e-40, dtype=torch.float32).mul(1.0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@cache
def _start_threads(count: int) -> None:
    """Let torch start its threads, which it does for the first operator that is large enough."""
    torch.zeros(count * 2**16).add_(1.0)


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make `dtype` torch's default within a block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Setting(NamedTuple):
    """One of torch's settings of precision, with its value for exact float32."""

    read: Callable[[], Any]
    write: Callable[[Any], None]
    exact: Any

    def is_readable(self) -> bool:
        """Whether torch tells its value: it refuses to where older and newer settings differ."""
        try:
            self.read()
        except RuntimeError:
            return False
        return True


def _quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without warnings: torch 2.9 to 2.11 warn of their older settings."""

    def call(*args: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)

    return call


def _attribute(owner: Any, name: str, exact: Any) -> _Setting:
    return _Setting(partial(getattr, owner, name), partial(setattr, owner, name), exact)


def _older() -> list[_Setting]:
    """Return what torch had before 2.9: packages that read it fail if it differs from the newer.

    It is written before the newer settings, since writing it changes some of them.
    """
    settings = [
        _Setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"),
        _attribute(torch.backends.cudnn, "allow_tf32", False),
    ]
    return [_Setting(_quietly(s.read), _quietly(s.write), s.exact) for s in settings]


def _reductions() -> list[_Setting]:
    names = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    return [_attribute(torch.backends.cuda.matmul, name, False) for name in names]


def _float32() -> list[_Setting]:
    """Return the settings since torch 2.9, one per backend and operator."""
    backends: Any = torch.backends
    if not hasattr(backends.cudnn, "conv"):
        return []
    owners = [backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn]
    owners += [backends.mkldnn.matmul, backends.mkldnn.conv, backends.mkldnn.rnn]
    return [_attribute(owner, "fp32_precision", "ieee") for owner in owners]
