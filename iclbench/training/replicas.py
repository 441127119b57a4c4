"""Replicas: models of one architecture whose parameters are stacked and trained as one program."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from ..api.errors import UsageError
from ..api.prompts import Batch, map_tensors
from .bound import Bound
from .threads import Map

Loss = Callable[[Tensor, Tensor], Tensor]

#: Held while a template is called with a replica's parameters in place of its own, or copied.
CALLED = threading.RLock()


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
        # Whether a forward pass is of several replicas without vmap.
        self.takes_replicas = bool(getattr(self.template, "takes_replicas", False))
        self.map: Map = map  # by what replicas and slices are computed that are by themselves
        self._modules: dict[tuple[int, ...], Bound] = {}

    def split(self, row: Tensor) -> list[Tensor]:
        """A row (P,) as tensors of the parameters' shapes, or rows (R, P) as (R, *shape)."""
        lead = row.shape[:-1]
        parts = torch.split(row, self.sizes, dim=-1)
        return [p.view((*lead, *s)) for p, s in zip(parts, self.shapes.values(), strict=True)]

    def views(self, rows: int | slice) -> dict[str, Tensor]:
        """Trainable parameters of a replica or several, as leaves that share `flat`'s memory."""
        parts = self.split(self.flat[rows])
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

    @property
    def by_threads(self) -> bool:
        """Whether what is by itself is computed at once."""
        return self.map is not map

    def gradients(self, batch: Batch, loss: Loss) -> tuple[Tensor, Tensor]:
        """The losses (R,) and their gradients (R, P) on stacked batches, (R, B, …) each field."""
        if self.count == 1:
            value, grad = self.gradient_of(0, batch, loss)
            return value.unsqueeze(0), grad.unsqueeze(0)
        if self.together == 1:
            return self._gradients_of(range(self.count), batch, loss)
        if self.group >= self.count:
            return self.stacked_gradients(batch, loss)
        starts = range(0, self.count, self.group)
        each = [self.stacked_gradients(batch, loss, start) for start in starts]
        return torch.cat([v for v, _ in each]), torch.cat([g for _, g in each])

    def losses_from(self, start: int, batch: Batch, loss: Loss) -> tuple[Tensor, list[Tensor]]:
        """Losses (r,) of the group from `start`, and the leaves (r, …) that they depend on."""
        rows = slice(start, min(start + self.group, self.count))
        prompt = map_tensors(lambda t: t[rows], batch.prompt)
        target = batch.target[rows]
        if self.takes_replicas and self.compiled is None and self.binds:
            bound = self._bound(rows)
            # A task's loss is each prompt's own.
            each = loss(bound.module(prompt).flatten(0, 1), target.flatten(0, 1))
            if bound.stands():
                return each.view(len(target), -1).mean(dim=1), bound.leaves
            self.binds = False
        flat = self.flat[rows].detach().requires_grad_()
        # Slices share memory with `fixed`, so buffers that a module updates are kept.
        fixed = {name: values[rows] for name, values in self.fixed.items()}
        run = self._stacked_losses if self.compiled is None else self.compiled[0]
        return run(flat, fixed, prompt, target, loss), [flat]

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

    def stacked_gradients(self, batch: Batch, loss: Loss, start: int = 0) -> tuple[Tensor, Tensor]:
        """Losses (r,) and gradients (r, P) of the group from `start`, as one program."""
        losses, leaves = self.losses_from(start, batch, loss)
        return losses.detach(), gradients_of(losses, leaves)

    def loss_of(
        self, replica: int, batch: Batch, loss: Loss, part: int = 0
    ) -> tuple[Tensor, list[Tensor]]:
        """One replica's loss () on stacked batches, and the leaves that it depends on.

        Each `part` of a batch has a module of its own, since threads compute them at once.
        """
        prompt, target, _ = _replica(batch, replica)
        if self.compiled is None and self.binds:
            bound = self._bound(replica, part)
            value = loss(bound.module(prompt), target).mean()
            if bound.stands():
                return value, bound.leaves
            self.binds = False
        row = self.flat[replica].detach().requires_grad_()
        fixed = {name: values[replica] for name, values in self.fixed.items()}
        run = self._single_loss if self.compiled is None else self.compiled[1]
        with CALLED:
            return run(row, fixed, prompt, target, loss), [row]

    def _bound(self, rows: int | slice, part: int = 0) -> Bound:
        """A module on a replica's rows, or on several's."""
        key = (rows, part) if isinstance(rows, int) else (rows.start, rows.stop, part)
        bound = self._modules.get(key)
        if bound is None or bound.flat is not self.flat or not bound.stands():
            tensors = self.views(rows)
            tensors.update({name: values[rows] for name, values in self.fixed.items()})
            with CALLED:
                bound = Bound(self.template, self.flat, tensors, list(self.shapes))
            self._modules[key] = bound
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
            values, grads = self._gradients_of([replica], batch, loss)
            return values[0], grads[0]
        value, leaves = self.loss_of(replica, batch, loss)
        return value.detach(), gradients_of(value, leaves)[0]

    def _gradients_of(
        self, replicas: Sequence[int], batch: Batch, loss: Loss
    ) -> tuple[Tensor, Tensor]:
        """Losses (r,) and gradients (r, P) of some replicas, of their batches' slices added up."""
        size = batch.target.shape[1]
        slices = min(self.slices, size)
        ends = [size * i // slices for i in range(slices + 1)]
        parts = list(itertools.product(range(len(replicas)), range(slices)))

        def of(part: tuple[int, int]) -> tuple[Tensor, Tensor]:
            row, index = part
            prompt = map_tensors(lambda t: t[:, ends[index] : ends[index + 1]], batch.prompt)
            slice_ = Batch(prompt, batch.target[:, ends[index] : ends[index + 1]])
            value, leaves = self.loss_of(replicas[row], slice_, loss, index)
            return value.detach(), gradients_of(value, leaves)[0]

        values = torch.zeros_like(self.flat[: len(replicas), 0])
        grads = torch.zeros_like(self.flat[: len(replicas)])
        for (row, index), (value, grad) in zip(parts, self.map(of, parts), strict=True):
            share = (ends[index + 1] - ends[index]) / size
            values[row] += share * value
            grads[row].add_(grad, alpha=share)
        return values, grads

    def compile(self) -> None:
        """Compile the losses, and with them their gradients, at their first use."""
        self.compiled = (torch.compile(self._stacked_losses), torch.compile(self._single_loss))

    def copy(self) -> Replicas:
        """The same replicas with buffers of their own, which a forward pass may change."""
        made = copy.copy(self)
        made.fixed = {name: value.clone() for name, value in self.fixed.items()}
        made._modules = {}
        return made

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


class Products(TorchFunctionMode):
    """Linear maps as a product and a sum: vmap's own rule multiplies both by 1 as well."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is nn.functional.linear and not kwargs:
            x, weight, *bias = args
            product = x @ weight.mT
            return product if not bias or bias[0] is None else product + bias[0]
        return func(*args, **(kwargs or {}))


def gradients_of(losses: Tensor, leaves: list[Tensor]) -> Tensor:
    """The gradient (r, P) of r losses in their leaves; 0 in those that they do not depend on."""
    # Each loss depends on its own rows alone, so the sum's gradient is every row's own.
    total = losses.sum() if losses.ndim else losses
    grads = torch.autograd.grad(total, leaves, materialize_grads=True)
    rows = [grad.reshape(losses.numel(), -1) for grad in grads]
    # One alone may be a view that repeats a number, which can't be added to.
    return rows[0].contiguous() if len(rows) == 1 else torch.cat(rows, dim=1)


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
