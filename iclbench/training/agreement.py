"""Whether replicas that are trained as one program learn as they would by themselves."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor

from ..api.prompts import Batch, map_tensors
from ..precision import default_dtype
from .engine import first_line
from .replicas import Loss, Replicas


def disagreement(replicas: Replicas, batch: Batch, loss: Loss) -> str | None:
    """Why stacking can't be used, or None: stacked and single losses and gradients agree.

    Compared on `batch` in training mode: as it will run, with each replica's gradient as a whole;
    and in float64, where rounding hides nothing, each parameter by itself (Adam heeds small
    gradients as much as large ones), and once more at moved parameters (what starts at zero hides
    what follows).
    """
    found = _compare(replicas.copy(), batch, loss, 1e-3, whole=True)
    if found is not None:
        return found
    exact = _in_float64(replicas)
    batch = Batch(*(_to_float64(part) for part in batch[:2]))
    with default_dtype(torch.float64):
        try:
            exact.copy().gradient_of(0, batch, loss)
        except Exception:
            return None  # a model of one dtype: the comparison above has to do
        for moved in (0.0, 0.1):
            generator = torch.Generator().manual_seed(0)
            noise = torch.randn(exact.flat.shape, generator=generator).to(exact.flat)
            exact.flat = exact.flat + moved * noise
            found = _compare(exact, batch, loss, 1e-6, whole=False)
            if found is not None:
                return found
    return None


def _compare(
    replicas: Replicas, batch: Batch, loss: Loss, tolerance: float, *, whole: bool
) -> str | None:
    """How stacked and single losses and gradients differ, or None; `whole` gradients or parts.

    What is not finite is not compared: moved parameters may overflow.
    """
    replicas.template.train()
    each = [replicas.gradient_of(r, batch, loss) for r in range(replicas.count)]
    try:
        ours = replicas.copy().stacked_gradients(batch, loss)
    except Exception as error:
        what = "take replicas" if replicas.takes_replicas else "be vmapped"
        return f"it can't {what} ({first_line(error)})"
    theirs = [torch.stack(values) for values in zip(*each, strict=True)]
    usable = torch.isfinite(theirs[0]) & torch.isfinite(theirs[1]).all(dim=1)
    (loss_a, grad_a), (loss_b, grad_b) = ((x[usable], y[usable]) for x, y in (ours, theirs))
    if not torch.allclose(loss_a, loss_b, rtol=tolerance, atol=0):
        return f"stacked and single losses differ by {(loss_a - loss_b).abs().max():.1e}"
    # Beside the replica's whole gradient, one that is rounding alone may differ as it likes.
    rounding = 10 * torch.finfo(grad_b.dtype).eps * grad_b.norm(dim=1)
    parts = [("all", grad_a, grad_b)]
    if not whole:
        split = replicas.split
        parts = list(zip(replicas.shapes, split(grad_a), split(grad_b), strict=True))
    for name, a, b in parts:
        difference, size = (_rows(t).norm(dim=1) for t in (a - b, b))
        if not (difference <= tolerance * size + rounding).all():
            return f"stacked and single gradients of {name} differ"
    return None


def _in_float64(replicas: Replicas) -> Replicas:
    made = replicas.copy()
    made.template, made.forms = copy.deepcopy(replicas.template).double(), {}
    made.flat = replicas.flat.double()
    made.fixed = {name: _to_float64(value) for name, value in made.fixed.items()}
    return made


def _to_float64(value: Any) -> Any:
    """A tensor, or every field of a prompt, in float64 where it is real."""
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value.clone()
    return map_tensors(_to_float64, value)


def _rows(t: Tensor) -> Tensor:
    """(R, …) as (R, n), also for R = 0."""
    return t.reshape(len(t), math.prod(t.shape[1:]))
