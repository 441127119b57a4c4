"""A CUDA device for tests where there is none: tensors that say `cuda:0` and lie on the CPU.

It refuses what a GPU refuses: operands on two devices, a generator of the other device, products of
integers, and, while a graph is captured, everything that waits for the device. A captured graph
replays its operators on the same memory, with the Python numbers of the capture. It neither knows
a GPU's rounding nor its memory nor its speed.

torch must not have been imported before. `pytest -p pretending` runs tests on this device.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import pretended_guard  # noqa: F401  # before torch, which asks for devices once
import torch
from pretended_graph import Graph, mapped, tensors_in
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

aten = torch.ops.aten
CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")

#: Operators that copy between devices.
COPIES = {aten._to_copy.default, aten.copy_.default}
#: Operators whose indices may lie on the CPU.
INDEXING = {aten.index.Tensor, aten._unsafe_index.Tensor, aten.index_put.default,
            aten.index_put_.default, aten._index_put_impl_.default}  # fmt: skip
#: Operators whose result the host reads, or whose size depends on values.
WAITING = {"_local_scalar_dense", "_unique2", "allclose", "bincount", "equal", "is_nonzero",
           "masked_select", "nonzero", "unique_consecutive", "unique_dim",
           "_linalg_check_errors"}  # fmt: skip
#: Products, which a GPU takes of floating-point numbers only.
PRODUCTS = {"addmm", "addmv", "baddbmm", "bmm", "dot", "mm", "mv"}


class Device:
    """The state of the device: the graph that is captured, and `torch.cuda`'s debug mode."""

    graph: Graph | None = None
    debug_mode = "default"


class OnCuda(torch.Tensor):
    """A tensor that says `cuda:0`. `inner`, on the CPU, has its values."""

    inner: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> OnCuda:
        # torch resolves lazy conjugations and negations before it calls `dispatch`: those of this
        # tensor, so `inner` has none.
        conjugated, negated = inner.is_conj(), inner.is_neg()
        inner = lazily(inner, conjugated=conjugated, negated=negated)
        tensor = torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(),
            dtype=inner.dtype, layout=inner.layout, device=CUDA,
        )  # fmt: skip
        torch._C._set_conj(tensor, conjugated)
        torch._C._set_neg(tensor, negated)
        tensor.inner = inner
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})

    # torch computes the following without an operator.

    @property
    def data(self) -> torch.Tensor:
        return torch.Tensor.data.__get__(self)

    @data.setter
    def data(self, value: OnCuda) -> None:
        torch.Tensor.data.__set__(self, value)
        self.inner = value.inner

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def __repr__(self) -> str:
        return f"OnCuda({self.inner!r})"

    def __format__(self, spec: str) -> str:
        return repr(self) if self.dim() else format(self.item(), spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        if id(self) not in memo:
            copied: torch.Tensor = OnCuda(self.inner.clone())
            if isinstance(self, torch.nn.Parameter):
                copied = torch.nn.Parameter(copied)
            memo[id(self)] = copied.requires_grad_(self.requires_grad)
        return memo[id(self)]


def lazily(tensor: torch.Tensor, *, conjugated: bool, negated: bool) -> torch.Tensor:
    """A view that is conjugated or negated when it is read."""
    tensor = torch._conj(tensor) if conjugated else tensor
    return torch._neg_view(tensor) if negated else tensor


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """The values of a tensor, on the CPU."""
    if not isinstance(tensor, OnCuda):
        return tensor
    return lazily(tensor.inner, conjugated=tensor.is_conj(), negated=tensor.is_neg())


class Pretending(TorchDispatchMode):
    """Sees operators without an operand on the device: those that make tensors there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})


def dispatch(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Compute an operator on the CPU; its results say the device that a GPU would put them on."""
    tensors = tensors_in([*args, *kwargs.values()])
    operands_on_cuda = any(isinstance(tensor, OnCuda) for tensor in tensors)
    asked = kwargs.get("device")
    device = ("cuda" if operands_on_cuda else "cpu") if asked is None else torch.device(asked).type
    generator = kwargs.get("generator")
    if generator is not None and generator.device.type != device:
        found = generator.device.type
        raise RuntimeError(f"expected a {device!r} device for generator but found {found!r}")
    if device == "cpu" and not operands_on_cuda:
        return func(*args, **kwargs)
    refuse_operands(func, args, tensors)
    if waits(func, args, kwargs, device):
        wait(func)
    inner_args, inner_kwargs = mapped(unwrapped, args), mapped(unwrapped, kwargs)
    if asked is not None:
        inner_kwargs |= {"device": CPU, "pin_memory": False}
    out = computed(func, inner_args, inner_kwargs)
    if device == "cpu" or (func is aten.copy_.default and not isinstance(args[0], OnCuda)):
        return args[0] if func is aten.copy_.default else out
    out = mapped(OnCuda, out)
    return return_and_correct_aliasing(func, args, kwargs, out) if operands_on_cuda else out


def refuse_operands(func: Any, args: tuple, tensors: list[torch.Tensor]) -> None:
    """Raise RuntimeError for operands on two devices, and for a product of integers."""
    name = func.overloadpacket.__name__
    if name in PRODUCTS and not tensors[0].is_floating_point():
        raise RuntimeError(f"{name} is not implemented on cuda for {tensors[0].dtype}")
    if func in COPIES:
        return
    if func in INDEXING:
        tensors = [args[0], *args[2:3]]
    # A number, which has no dimensions, may lie on the CPU beside others.
    numbers_anywhere = torch.Tag.pointwise in func.tags or func in INDEXING or "fill" in name
    devices = {t.device.type for t in tensors if t.is_cuda or t.dim() or not numbers_anywhere}
    if len(devices) > 1:
        where = ", ".join(f"{tuple(t.shape)} on {t.device}" for t in tensors)
        raise RuntimeError(f"{func}: expected all tensors to be on the same device, not {where}")


def waits(func: Any, args: tuple, kwargs: dict[str, Any], device: str) -> bool:
    """Whether the host waits for the device in this operator."""
    if func in INDEXING:
        masks = {torch.bool, torch.uint8}
        return any(i.dtype in masks or not i.is_cuda for i in args[1] if i is not None)
    if func is aten.repeat_interleave.Tensor:
        return kwargs.get("output_size") is None
    if func is aten._to_copy.default:
        return args[0].is_cuda != (device == "cuda")
    if func is aten.copy_.default:
        # From pinned memory, a copy need not be waited for.
        early = args[2:] == (True,) and getattr(args[1], "is_said_to_be_pinned", False)
        return args[0].is_cuda != args[1].is_cuda and not early
    return func.overloadpacket.__name__ in WAITING


def wait(func: Any) -> None:
    """Do what torch does where the host waits: nothing, warn, or raise."""
    if Device.graph is not None:
        Device.graph.broken = True
        raise RuntimeError(f"{func}: operation not permitted when stream is capturing")
    if Device.debug_mode == "error":
        raise RuntimeError(f"called a synchronizing CUDA operation: {func}")
    if Device.debug_mode == "warn":
        warnings.warn(f"called a synchronizing CUDA operation: {func}", stacklevel=3)


def computed(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result on the CPU, drawn from a generator in the state of the device's."""
    if Device.graph is not None:
        return Device.graph.record(func, args, kwargs)
    generator = kwargs.get("generator")
    if generator is None:
        return func(*args, **kwargs)
    here = torch.Generator()
    here.set_state(generator.get_state())
    out = func(*args, **{**kwargs, "generator": here})
    generator.set_state(here.get_state())
    return out


@contextlib.contextmanager
def capture(graph: Graph, stream: Any = None) -> Iterator[None]:
    """As `torch.cuda.graph`."""
    Device.graph = graph
    try:
        yield
    finally:
        Device.graph = None
    if graph.broken:
        raise RuntimeError("operation failed due to a previous error during capture")
