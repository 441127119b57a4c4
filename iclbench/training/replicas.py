"""Replicas: models of one architecture whose parameters are stacked and trained as one program."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from ..errors import UsageError
from ..precision import default_dtype
from ..prompts import Batch, map_tensors

Loss = Callable[[Tensor, Tensor], Tensor]


class Replicas:
    """R models as one: trainable parameters in `flat` (R, P), the rest in `fixed`.

    `fixed` maps the names of frozen parameters and buffers to tensors (R, …).
    """

    def __init__(
        self, modules: list[nn.Module], device: torch.device, freeze: tuple[str, ...] = ()
    ) -> None:
        """Stack the modules' parameters; raises UsageError for a pattern that freezes nothing."""
        named = [dict(module.named_parameters()) for module in modules]
        frozen = matching(list(named[0]), freeze)
        trained = [name for name in named[0] if name not in frozen]
        if not trained:
            raise UsageError("there is nothing to train: every parameter is frozen or none exists")
        self.count = len(modules)
        self.shapes = {name: named[0][name].shape for name in trained}
        self.sizes = [shape.numel() for shape in self.shapes.values()]
        rows = [torch.cat([n[name].detach().reshape(-1) for name in trained]) for n in named]
        self.flat = torch.stack(rows).to(device)
        states = [{**{n: p[n] for n in frozen}, **dict(m.named_buffers())}
                  for m, p in zip(modules, named, strict=True)]  # fmt: skip
        self.fixed = {
            name: torch.stack([state[name].detach() for state in states]).to(device)
            for name in states[0]
        }
        self.template = copy.deepcopy(modules[0]).to(device).requires_grad_(False)
        self.stacked = self.count > 1
        self.group = self.count  # replicas in one vmapped program, where they are stacked
        self.slices = 1  # parts of a batch whose gradients are added up, of a replica by itself
        self.compiled: tuple[Any, Any] | None = None
        self.binds = True  # whether a forward pass leaves parameters and buffers where they are
        self._modules: dict[int, Bound] = {}

    def split(self, row: Tensor) -> list[Tensor]:
        """A row (P,) as tensors of the parameters' shapes, or rows (R, P) as (R, *shape)."""
        lead = row.shape[:-1]
        parts = torch.split(row, self.sizes, dim=-1)
        return [p.view((*lead, *s)) for p, s in zip(parts, self.shapes.values(), strict=True)]

    def views(self, replica: int) -> dict[str, Tensor]:
        """One replica's trainable parameters as leaves that share memory with `flat`."""
        parts = self.split(self.flat[replica])
        return {
            name: part.detach().requires_grad_()
            for name, part in zip(self.shapes, parts, strict=True)
        }

    def state(self, replica: int) -> dict[str, Tensor]:
        """One replica's parameters and buffers, copied to the CPU."""
        parts = dict(zip(self.shapes, self.split(self.flat[replica]), strict=True))
        parts.update({name: values[replica] for name, values in self.fixed.items()})
        return {name: part.detach().to("cpu", copy=True) for name, part in parts.items()}

    @property
    def together(self) -> int:
        """How many replicas one program trains."""
        return min(self.group, self.count) if self.stacked else 1

    def gradients(self, batch: Batch, loss: Loss) -> tuple[Tensor, Tensor]:
        """The losses (R,) and their gradients (R, P) on stacked batches, (R, B, …) each field."""
        if self.count == 1:
            value, grad = self.gradient_of(0, batch, loss)
            return value.unsqueeze(0), grad.unsqueeze(0)
        if self.together == 1:
            each = [self.gradient_of(r, batch, loss) for r in range(self.count)]
            return torch.stack([v for v, _ in each]), torch.stack([g for _, g in each])
        if self.group >= self.count:
            return self._stacked_gradients(batch, loss)
        starts = range(0, self.count, self.group)
        each = [self._stacked_gradients(batch, loss, start) for start in starts]
        return torch.cat([v for v, _ in each]), torch.cat([g for _, g in each])

    def losses_from(self, start: int, batch: Batch, loss: Loss) -> tuple[Tensor, Tensor]:
        """Losses (r,) of the group from `start`, and the leaf (r, P) that they depend on."""
        rows = slice(start, start + self.group)
        flat = self.flat[rows].detach().requires_grad_()
        # Slices share memory with `fixed`, so buffers that a module updates are kept.
        fixed = {name: values[rows] for name, values in self.fixed.items()}
        prompt = map_tensors(lambda t: t[rows], batch.prompt)
        run = self._stacked_losses if self.compiled is None else self.compiled[0]
        return run(flat, fixed, prompt, batch.target[rows], loss), flat

    def _stacked_losses(
        self, flat: Tensor, fixed: dict[str, Tensor], prompt: Any, target: Tensor, loss: Loss
    ) -> Tensor:
        parameters = dict(zip(self.shapes, self.split(flat), strict=True))

        def replica_loss(
            state: dict[str, Tensor], fixed: dict[str, Tensor], prompt: Any, target: Tensor
        ) -> Tensor:
            prediction = functional_call(self.template, {**state, **fixed}, (prompt,))
            return loss(prediction, target).mean()

        with Products():
            found: Tensor = vmap(replica_loss)(parameters, fixed, prompt, target)
        return found

    def _stacked_gradients(self, batch: Batch, loss: Loss, start: int = 0) -> tuple[Tensor, Tensor]:
        losses, flat = self.losses_from(start, batch, loss)
        # Each loss depends on its own row alone, so the sum's gradient is every row's own.
        (grad,) = torch.autograd.grad(losses.sum(), flat)
        return losses.detach(), grad

    def loss_of(self, replica: int, batch: Batch, loss: Loss) -> tuple[Tensor, list[Tensor]]:
        """One replica's loss () on stacked batches, and the leaves that it depends on."""
        prompt, target, _ = _replica(batch, replica)
        if self.compiled is None and self.binds:
            bound = self._bound(replica)
            value = loss(bound.module(prompt), target).mean()
            if bound.stands():
                return value, bound.leaves
            self.binds = False
        row = self.flat[replica].detach().requires_grad_()
        fixed = {name: values[replica] for name, values in self.fixed.items()}
        run = self._single_loss if self.compiled is None else self.compiled[1]
        return run(row, fixed, prompt, target, loss), [row]

    def _bound(self, replica: int) -> Bound:
        bound = self._modules.get(replica)
        if bound is None or bound.flat is not self.flat or not bound.stands():
            tensors = self.views(replica)
            tensors.update({name: values[replica] for name, values in self.fixed.items()})
            bound = Bound(self.template, self.flat, tensors, list(self.shapes))
            self._modules[replica] = bound
        if bound.module.training != self.template.training:
            bound.module.train(self.template.training)
        return bound

    def _single_loss(
        self, row: Tensor, fixed: dict[str, Tensor], prompt: Any, target: Tensor, loss: Loss
    ) -> Tensor:
        state = {**dict(zip(self.shapes, self.split(row), strict=True)), **fixed}
        prediction = functional_call(self.template, state, (prompt,))
        return loss(prediction, target).mean()

    def gradient_of(self, replica: int, batch: Batch, loss: Loss) -> tuple[Tensor, Tensor]:
        """One replica's loss () and gradient (P,) on stacked batches, computed by itself."""
        if self.slices > 1:
            return self._sliced_gradient(replica, batch, loss)
        value, leaves = self.loss_of(replica, batch, loss)
        return value.detach(), row_gradient(value, leaves)

    def _sliced_gradient(self, replica: int, batch: Batch, loss: Loss) -> tuple[Tensor, Tensor]:
        size = batch.target.shape[1]
        ends = [size * i // self.slices for i in range(self.slices + 1)]
        total, whole = torch.zeros_like(self.flat[0, 0]), torch.zeros_like(self.flat[0])
        for start, stop in itertools.pairwise(ends):
            prompt = map_tensors(lambda t, s=start, e=stop: t[:, s:e], batch.prompt)
            part = Batch(prompt, batch.target[:, start:stop])
            value, leaves = self.loss_of(replica, part, loss)
            share = (stop - start) / size
            total += share * value.detach()
            whole.add_(row_gradient(value, leaves), alpha=share)
        return total, whole

    def compile(self) -> None:
        """Compile the losses, and with them their gradients, at their first use."""
        self.compiled = (torch.compile(self._stacked_losses), torch.compile(self._single_loss))

    def disagreement(self, batch: Batch, loss: Loss) -> str | None:
        """Why stacking can't be used, or None: stacked and single losses and gradients agree.

        Compared on `batch` in training mode: as it will run, with each replica's gradient as a
        whole; and in float64, where rounding hides nothing, each parameter by itself (Adam heeds
        small gradients as much as large ones), and once more at moved parameters (what starts at
        zero hides what follows).
        """
        found = self.copy()._compare(batch, loss, 1e-3, whole=True)
        if found is not None:
            return found
        exact = self._in_float64()
        batch = Batch(*(_to_float64(part) for part in batch[:2]))
        with default_dtype(torch.float64):
            try:
                exact.copy().gradient_of(0, batch, loss)
            except Exception:
                return None  # a model of one dtype: the comparison above has to do
            for moved in (0.0, 0.1):
                generator = torch.Generator().manual_seed(0)
                noise = torch.randn(self.flat.shape, generator=generator).to(exact.flat)
                exact.flat = exact.flat + moved * noise
                found = exact._compare(batch, loss, 1e-6, whole=False)
                if found is not None:
                    return found
        return None

    def copy(self) -> Replicas:
        """The same replicas with buffers of their own, which a forward pass may change."""
        made = copy.copy(self)
        made.fixed = {name: value.clone() for name, value in self.fixed.items()}
        made._modules = {}
        return made

    def _in_float64(self) -> Replicas:
        made = self.copy()
        made.template = copy.deepcopy(self.template).double()
        made.flat = self.flat.double()
        made.fixed = {name: _to_float64(value) for name, value in made.fixed.items()}
        return made

    def _compare(self, batch: Batch, loss: Loss, tolerance: float, *, whole: bool) -> str | None:
        """How stacked and single losses and gradients differ, or None; `whole` gradients or parts.

        What is not finite is not compared: moved parameters may overflow.
        """
        self.template.train()
        each = [self.gradient_of(r, batch, loss) for r in range(self.count)]
        try:
            ours = self.copy()._stacked_gradients(batch, loss)
        except Exception as error:
            return f"it can't be vmapped ({type(error).__name__}: {_first_line(error)})"
        theirs = [torch.stack(values) for values in zip(*each, strict=True)]
        usable = torch.isfinite(theirs[0]) & torch.isfinite(theirs[1]).all(dim=1)
        (loss_a, grad_a), (loss_b, grad_b) = ((x[usable], y[usable]) for x, y in (ours, theirs))
        if not torch.allclose(loss_a, loss_b, rtol=tolerance, atol=0):
            return f"stacked and single losses differ by {(loss_a - loss_b).abs().max():.1e}"
        # Beside the replica's whole gradient, one that is rounding alone may differ as it likes.
        rounding = 10 * torch.finfo(grad_b.dtype).eps * grad_b.norm(dim=1)
        parts = [("all", grad_a, grad_b)]
        if not whole:
            parts = list(zip(self.shapes, self.split(grad_a), self.split(grad_b), strict=True))
        for name, a, b in parts:
            difference, size = (_rows(t).norm(dim=1) for t in (a - b, b))
            if not (difference <= tolerance * size + rounding).all():
                return f"stacked and single gradients of {name} differ"
        return None

    def draws(self, batch: Batch) -> bool:
        """Whether a forward pass in training mode uses torch's global generators."""
        devices = [self.flat.device] if self.flat.device.type == "cuda" else []
        self.template.train()
        fixed = {name: values[0].clone() for name, values in self.fixed.items()}
        state = {**self.views(0), **fixed}
        with torch.no_grad(), torch.random.fork_rng(devices):
            before = random_state(self.flat.device)
            functional_call(self.template, state, (_replica(batch, 0).prompt,))
            return not torch.equal(before, random_state(self.flat.device))


class Bound:
    """A copy of a module on one replica's rows, `module`, and its trained parameters, `leaves`.

    Made once: to put parameters into the template at every step costs a small model as much as its
    products. It `stands` until a forward pass puts another tensor in a parameter's or buffer's
    place, after which what happens to the rows is nothing to the module, or the reverse.
    """

    def __init__(
        self, template: nn.Module, flat: Tensor, tensors: dict[str, Tensor], trained: list[str]
    ) -> None:
        self.module, self.flat = copy.deepcopy(template), flat
        named = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        for name, tensor in named.items():
            tensor.data = tensors[name].data
        self.leaves: list[Tensor] = [named[name].requires_grad_() for name in trained]
        parts: list[Any] = list(self.module.modules())  # a plugin's own may be among them
        for part in parts:
            if hasattr(part, "trains_alone"):
                part.trains_alone = True
        self._places = [
            (held, key, tensor, tensor.data_ptr())
            for part in self.module.modules()
            for held in (part._parameters, part._buffers)
            for key, tensor in held.items()
            if tensor is not None
        ]

    def stands(self) -> bool:
        """Whether everything is where it was put."""
        return all(
            held.get(key) is tensor and tensor.data_ptr() == pointer
            for held, key, tensor, pointer in self._places
        )


class Products(TorchFunctionMode):
    """Linear maps as a product and a sum: vmap's own rule multiplies both by 1 as well."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is nn.functional.linear and not kwargs:
            x, weight, *bias = args
            product = x @ weight.mT
            return product if not bias or bias[0] is None else product + bias[0]
        return func(*args, **(kwargs or {}))


def row_gradient(value: Tensor, leaves: list[Tensor]) -> Tensor:
    """The gradient (P,) of a loss () in its leaves; 0 in those that it does not depend on."""
    grads = torch.autograd.grad(value, leaves, materialize_grads=True)
    return torch.cat([grad.reshape(-1) for grad in grads])


def _rows(t: Tensor) -> Tensor:
    """(R, …) as (R, n), also for R = 0."""
    return t.reshape(len(t), math.prod(t.shape[1:]))


def random_state(device: torch.device) -> Tensor:
    """The state of torch's global generator on `device`."""
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.get_rng_state()


def set_random_state(device: torch.device, state: Tensor) -> None:
    """Restore what `random_state` gave."""
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


def _to_float64(value: Any) -> Any:
    """A tensor, or every field of a prompt, in float64 where it is real."""
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value.clone()
    return map_tensors(_to_float64, value)


def _replica(batch: Batch, replica: int) -> Batch:
    prompt = map_tensors(lambda t: t[replica], batch.prompt)
    return Batch(prompt, batch.target[replica])


def matching(names: list[str], patterns: tuple[str, ...]) -> set[str]:
    """The names that any of the patterns matches; raises UsageError for one that matches none."""
    found = set()
    for pattern in patterns:
        matched = {name for name in names if fnmatchcase(name, pattern)}
        if not matched:
            raise UsageError(
                f"--freeze {pattern!r} matches no parameter; known: {', '.join(names)}"
            )
        found |= matched
    return found


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:160] if str(error).strip() else ""
