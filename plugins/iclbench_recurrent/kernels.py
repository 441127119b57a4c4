"""flash-linear-attention's kernels for training on a GPU, checked against the native forms.

Nothing of that package is imported before a model with `kernels=fla` is trained on a GPU. Kernels
that multiply by tensor cores round float32 to fewer digits, so the kernels that compute step by
step are used where they have a gradient.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from iclbench import TrainingContext, UsageError, report

from .mixer import Form, RecurrentMixer

#: Largest difference from the native form, relative to the norm, in float32.
TOLERANCE = 1e-5
#: Prompts and, at most, positions of the check.
PROMPTS, POSITIONS = 2, 128


class KernelMixer(nn.Module):
    """A mixer's training form, (B, S, width) → (B, S, width), with a kernel as its form."""

    def __init__(self, mixer: RecurrentMixer, form: Form) -> None:
        super().__init__()
        self.mixer, self.form = mixer, form

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        output: Tensor = self.mixer.mix(x, None, self.form)[0]
        return output


def on_gpu(context: TrainingContext) -> bool:
    """Whether training runs on a GPU."""
    return context.device.type == "cuda"


def kernel_mixer(mixer: RecurrentMixer, context: TrainingContext) -> nn.Module | None:
    """Return the mixer with its kernel, or None where training uses the native form.

    Raises UsageError if several replicas would be trained at once, or compiled; the engine then
    trains them one by one.
    """
    # The engine also compares its programs in float64, which needs the native form.
    if not on_gpu(context) or context.dtype != torch.float32 or context.positions is not None:
        return None
    shapes = tuple(parameter.shape for parameter in mixer.parameters())
    # Other heads, or another range of β, may have parameters of the same shapes.
    plain = (int, float, str, tuple)
    options = tuple(item for item in vars(mixer).items() if isinstance(item[1], plain))
    key = (type(mixer), shapes, options, context.length, context.device)
    if key not in _PROBLEMS:
        _PROBLEMS[key] = _find_problem(mixer, context)
        if _PROBLEMS[key] is not None:
            report(f"kernels=fla: {type(mixer).__name__} trains natively: {_PROBLEMS[key]}")
    if _PROBLEMS[key] is not None:
        return None
    if context.replicas != "alone" or not context.takes_any_operator:
        raise UsageError("kernels=fla trains one replica at a time, uncompiled")
    return KernelMixer(mixer, KERNELS[mixer.kernel](_import))


#: Why a kernel can't be used, or None, by mixer, options, length and device: checked once each.
_PROBLEMS: dict[Any, str | None] = {}


def _find_problem(mixer: RecurrentMixer, context: TrainingContext) -> str | None:
    try:
        form = KERNELS[mixer.kernel](_import)
    except UsageError as error:
        return str(error)
    return find_mismatch(mixer, form, context)


def find_mismatch(mixer: RecurrentMixer, form: Form, context: TrainingContext) -> str | None:
    """Return how outputs and gradients of a kernel differ from the native form's, or None."""
    try:
        differing = differences(mixer, form, context)
    except Exception as error:
        if context.device.type == "cuda":
            torch.cuda.synchronize(context.device)  # raises what ended the whole device
        if isinstance(error, torch.OutOfMemoryError):  # it may fit the next time
            raise
        return f"the kernel fails with {type(error).__name__}: {' '.join(str(error).split())}"
    for what, difference in differing.items():
        # Written so that NaN counts as different.
        if not difference <= TOLERANCE:
            return f"the kernel's {what} differ by {difference:.1e}, more than {TOLERANCE:.0e}"
    return None


def differences(mixer: RecurrentMixer, form: Form, context: TrainingContext) -> dict[str, float]:
    """Return the difference of a kernel's outputs and gradients, relative to the native norms.

    The inputs are those of this mixer's recurrence for random states. The native form computes in
    float64, so that the difference is the kernel's.
    """
    inputs = _inputs_of(mixer, context)
    exact = _results(mixer.chunked, [t.double() for t in inputs])
    actual = _results(form, inputs)
    needed = [i for i, t in enumerate(inputs, start=1) if t.requires_grad]
    names = ["outputs", *(f"gradients of input {i}" for i in needed)]
    # At one position, the decays change nothing: their gradients are 0.
    tiny = torch.finfo(torch.float64).tiny
    return {
        name: float((kernel.double() - native).norm() / native.norm().clamp(min=tiny))
        for name, kernel, native in zip(names, actual, exact, strict=True)
    }


def _inputs_of(mixer: RecurrentMixer, context: TrainingContext) -> list[Tensor]:
    """Return the inputs of the mixer's recurrence for random states, in float32."""
    inputs: list[Tensor] = []
    # The engine's template does not need gradients, from which the inputs that need them follow.
    mixer = copy.deepcopy(mixer).requires_grad_()

    def record(*tensors: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        inputs.extend(t.detach().float().requires_grad_(t.requires_grad) for t in tensors)
        return mixer.chunked(*tensors, state=state)

    length = min(POSITIONS, context.length or POSITIONS)
    # A generator of its own: a check must not move the run's random numbers.
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(PROMPTS, length, mixer.output.out_features, generator=generator)
    with torch.enable_grad():
        mixer.mix(x.to(mixer.output.weight), None, record)
    return inputs


def _results(form: Form, inputs: list[Tensor]) -> list[Tensor]:
    """Return a form's outputs, and the gradients of a function of them at inputs that need them."""
    leaves = [t.detach().requires_grad_(t.requires_grad) for t in inputs]
    output = form(*leaves)[0]
    needed = [t for t in leaves if t.requires_grad]
    return [output.detach(), *torch.autograd.grad(output.square().sum(), needed)]


Operators = Callable[[str, str], Callable[..., Any]]


def _import(module: str, name: str) -> Callable[..., Any]:
    """Return an operator of flash-linear-attention; raises UsageError if it is not installed."""
    try:
        operator: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"{module}.{name} is missing: pip install 'iclbench[fla]' ({error})"
        ) from None
    return operator


def _linear(operators: Operators) -> Form:
    """The form of `linear.chunked`."""
    per_head = operators("fla.ops.simple_gla", "fused_recurrent_simple_gla")
    per_key = operators("fla.ops.gla", "fused_recurrent_gla")

    def form(
        query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, *, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        lead = value.shape[:2]
        query, key, log_decay = (t.expand(*lead, -1, -1) for t in (query, key, log_decay))
        q, k, v, g = (_swap(t) for t in (query, key, value, log_decay))
        options = {"scale": 1.0, "initial_state": state, "output_final_state": True}
        if log_decay.shape[-1] == 1:
            output, state = per_head(q, k, v, g=g.squeeze(-1), **options)
        else:
            output, state = per_key(q, k, v, gk=g, **options)
        return _swap(output), state

    return form


def _delta(operators: Operators) -> Form:
    """The form of `delta.chunked` without decay."""
    rule = operators("fla.ops.delta_rule", "fused_recurrent_delta_rule")

    def form(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        beta: Tensor,
        log_decay: Tensor,
        *,
        state: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        updates = key.shape[2] // query.shape[2]
        # The kernel reads after every update; only the last reading of a position is kept.
        q, k, v, b = (_swap(t) for t in (query.repeat_interleave(updates, dim=2), key, value, beta))
        options = {"scale": 1.0, "initial_state": state, "output_final_state": True}
        output, state = rule(q, k, v, b.squeeze(-1), **options)
        return _swap(output)[:, :, updates - 1 :: updates], state

    return form


def _gated_delta(operators: Operators) -> Form:
    """The form of `delta.chunked` with one update per position."""
    rule = operators("fla.ops.gated_delta_rule", "chunk_gated_delta_rule")

    def form(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        beta: Tensor,
        log_decay: Tensor,
        *,
        state: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        q, k, v, b, g = (_swap(t) for t in (query, key, value, beta, log_decay))
        options = {"scale": 1.0, "initial_state": state, "output_final_state": True}
        output, state = rule(q, k, v, g.squeeze(-1), b.squeeze(-1), **options)
        return _swap(output), state

    return form


def _swap(x: Tensor) -> Tensor:
    """Exchange heads and positions: the kernels take (B, S, heads, d)."""
    return x.transpose(1, 2).contiguous()


#: The kernels by the name that a mixer gives.
KERNELS = {"linear": _linear, "delta": _delta, "gated-delta": _gated_delta}
