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

from ..api.capabilities import TrainingContext
from ..api.errors import UsageError
from ..api.prompts import Batch, map_tensors
from ..nn.training_form import names_in, training_form
from .bound import Bound
from .threads import Map

Loss = Callable[[Tensor, Tensor], Tensor]
#: A training form and its names of the module's parameters and buffers.
Called = tuple[nn.Module, dict[str, str]]

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
        self.factored_logits = False  # whether the loss takes FactoredLogits
        self.forms: dict[Any, nn.Module | None] = {}
        # Whether a forward pass is of several replicas without vmap.
        leading = self.context("leading", 1)
        self.takes_replicas = training_form(self.template.train(), leading) is not None
        self.map: Map = map  # by what replicas and slices are computed that are by themselves
        self._modules: dict[tuple[int, ...], Bound] = {}

    # SEAM: the gradient programs replace `context`, `form_of`, `forms` and `called`.
    def context(self, replicas: Any, batch_size: int) -> TrainingContext:
        """How the module is called, as autocast stands now."""
        kind = self.flat.device.type
        return TrainingContext(
            device=self.flat.device,
            dtype=self.flat.dtype,
            batch_size=batch_size,
            replicas=replicas,
            autocast=torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None,
            compiled=self.compiled is not None,
            factored_logits=self.factored_logits,
        )

    def form_of(
        self, module: nn.Module, forms: dict[Any, nn.Module | None], replicas: Any, size: int
    ) -> nn.Module:
        """The module's training form for `size` prompts, made once; raises TypeError for none."""
        context = self.context(replicas, size)
        if context not in forms:
            forms[context] = training_form(module.train(), context)
        form = forms[context]
        if form is None:
            raise TypeError("it has no form for leading replicas")
        return form

    def called(self, size: int) -> Called:
        """The template's training form for `size` prompts, and its names of the parameters."""
        form = self.form_of(self.template, self.forms, "vmapped", size)
        return form, names_in(form, self.template)

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
            form = self.form_of(bound.module, bound.forms, "leading", target.shape[1])
            each = loss(form(prompt).flatten(0, 1), target.flatten(0, 1))
            if bound.stands():
                return each.view(len(target), -1).mean(dim=1), bound.leaves
            self.binds = False
        flat = self.flat[rows].detach().requires_grad_()
        # Slices share memory with `fixed`, so buffers that a module updates are kept.
        fixed = {name: values[rows] for name, values in self.fixed.items()}
        run = self._stacked_losses if self.compiled is None else self.compiled[0]
        called = self.called(target.shape[1])
        return run(called, flat, fixed, Batch(prompt, target), loss), [flat]

    def _stacked_losses(
        self, called: Called, flat: Tensor, fixed: dict[str, Tensor], batch: Batch, loss: Loss
    ) -> Tensor:
        parameters = dict(zip(self.shapes, self.split(flat), strict=True))

        def replica_loss(
            state: dict[str, Tensor], fixed: dict[str, Tensor], prompt: Any, target: Tensor
        ) -> Tensor:
            return loss(call(called, {**state, **fixed}, prompt), target).mean()

        with Products():
            found: Tensor = vmap(replica_loss)(parameters, fixed, batch.prompt, batch.target)
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
            form = self.form_of(bound.module, bound.forms, "alone", len(target))
            value = loss(form(prompt), target).mean()
            if bound.stands():
                return value, bound.leaves
            self.binds = False
        row = self.flat[replica].detach().requires_grad_()
        fixed = {name: values[replica] for name, values in self.fixed.items()}
        run = self._single_loss if self.compiled is None else self.compiled[1]
        with CALLED:
            return run(self.called(len(target)), row, fixed, Batch(prompt, target), loss), [row]

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
        return bound

    def _single_loss(
        self, called: Called, row: Tensor, fixed: dict[str, Tensor], batch: Batch, loss: Loss
    ) -> Tensor:
        state = {**dict(zip(self.shapes, self.split(row), strict=True)), **fixed}
        return loss(call(called, state, batch.prompt), batch.target).mean()

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
        made._modules, made.forms = {}, {}
        return made

    def draws(self, batch: Batch) -> bool:
        """Whether a forward pass in training mode uses torch's global generators."""
        devices = [self.flat.device] if self.flat.device.type == "cuda" else []
        self.template.train()
        fixed = {name: values[0].clone() for name, values in self.fixed.items()}
        state = {**self.views(0), **fixed}
        with torch.no_grad(), torch.random.fork_rng(devices):
            before = random_state(self.flat.device)
            call(self.called(batch.target.shape[1]), state, _replica(batch, 0).prompt)
            return not torch.equal(before, random_state(self.flat.device))


def call(called: Called, state: dict[str, Tensor], prompt: Any) -> Any:
    """A form's prediction with other parameters and buffers, by the module's names."""
    form, names = called
    renamed = {names[name]: tensor for name, tensor in state.items() if name in names}
    return functional_call(form, renamed, (prompt,))


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
