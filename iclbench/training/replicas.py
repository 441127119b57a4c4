"""Replicas: the state of all models that are trained as one program."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ..api.errors import LISTED, UsageError


class Replicas:
    """R models of one architecture, their state stacked.

    `flat` (R, P) holds the trained parameters, one row per replica, and is updated in place.
    `frozen_and_buffers` maps the names of all other parameters and of buffers to tensors (R, …).
    `random_states` holds one generator state per replica where the model draws random numbers in
    its forward pass, else None. `template` is the paper's module in training mode, of which copies
    are made; `called` is the one that is called. Their own parameters are never used.
    """

    def __init__(
        self, modules: list[nn.Module], device: torch.device, freeze: tuple[str, ...] = ()
    ) -> None:
        """Stack the modules' state.

        Parameters that `freeze` matches, or that require no gradient, are frozen. Raises UsageError
        for a pattern that matches no parameter, and where nothing is left to train.
        """
        named = [dict(module.named_parameters()) for module in modules]
        matched = matching(list(named[0]), freeze)
        frozen = [name for name, p in named[0].items() if name in matched or not p.requires_grad]
        trained = [name for name in named[0] if name not in frozen]
        if not trained:
            raise UsageError("there is nothing to train: every parameter is frozen or none exists")
        self.count = len(modules)
        self.shapes = {name: named[0][name].shape for name in trained}
        self.sizes = [shape.numel() for shape in self.shapes.values()]
        rows = [torch.cat([n[name].detach().reshape(-1) for name in trained]) for n in named]
        # One matrix, so that clipping, checking and updating are one operator for all replicas.
        self.flat = torch.stack(rows).to(device)
        others = [{**{n: p[n] for n in frozen}, **dict(m.named_buffers())}
                  for m, p in zip(modules, named, strict=True)]  # fmt: skip
        self.frozen_and_buffers = {
            name: torch.stack([other[name].detach() for other in others]).to(device)
            for name in others[0]
        }
        self.buffers = [name for name in others[0] if name not in frozen]
        self.random_states: list[Tensor] | None = None
        # Parameters are passed at each call, so those of the template need no gradient.
        self.template = copy.deepcopy(modules[0]).to(device).requires_grad_(False).train()
        self.called = _twin(self.template)

    def split(self, rows: Tensor) -> dict[str, Tensor]:
        """Name the parts of a row (P,), or of rows (r, P), in the parameters' shapes; views."""
        lead = rows.shape[:-1]
        parts = torch.split(rows, self.sizes, dim=-1)
        named = zip(self.shapes.items(), parts, strict=True)
        return {name: part.view((*lead, *shape)) for (name, shape), part in named}

    def views(self, rows: int | slice) -> dict[str, Tensor]:
        """Return the trained parameters of one replica or several, as leaves on `flat`'s memory."""
        parts = self.split(self.flat[rows])
        return {name: part.detach().requires_grad_() for name, part in parts.items()}

    def others(self, rows: int | slice) -> dict[str, Tensor]:
        """Return the frozen parameters and buffers of one replica or several, as views."""
        return {name: values[rows] for name, values in self.frozen_and_buffers.items()}

    def tensors(self, replica: int, row: Tensor) -> dict[str, Tensor]:
        """Return what one replica's module needs, by name, at parameters `row` (P,)."""
        return {**self.split(row), **self.others(replica)}

    def predict(self, replica: int, row: Tensor, prompt: Any) -> Tensor:
        """Return one replica's prediction at parameters `row` (P,), by the paper's module."""
        return self.call(self.tensors(replica, row), prompt)

    def call(self, tensors: dict[str, Tensor], prompt: Any) -> Tensor:
        """Return the prediction of the paper's module with these parameters and buffers."""
        prediction: Tensor = functional_call(self.called, tensors, (prompt,))
        return prediction

    def keep(self, replica: int, tensors: Mapping[str, Tensor]) -> None:
        """Copy what a forward pass put in the place of one replica's tensors.

        `self.scale = 0.9 * self.scale` and `weight.data = …` leave other tensors in `tensors`,
        which are lost with it.
        """
        for name, stored in self.tensors(replica, self.flat[replica]).items():
            # In-place changes have reached the stacked memory already.
            if tensors[name].data_ptr() != stored.data_ptr():
                stored.copy_(tensors[name].detach())

    def state_dict(self, replica: int) -> dict[str, Tensor]:
        """Return one replica's parameters and buffers, copied to the CPU."""
        tensors = self.tensors(replica, self.flat[replica])
        return {name: part.detach().to("cpu", copy=True) for name, part in tensors.items()}

    def state(self) -> dict[str, Tensor]:
        """Return everything that changes in training, by name; not copied."""
        return {
            "flat": self.flat,
            **{f"fixed/{name}": value for name, value in self.frozen_and_buffers.items()},
            **{f"random/{r}": state for r, state in enumerate(self.random_states or [])},
        }

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy a state into this one, in place."""
        self.flat.copy_(tensors["flat"])
        for name, value in self.frozen_and_buffers.items():
            value.copy_(tensors[f"fixed/{name}"])
        if self.random_states is not None:
            self.random_states = [tensors[f"random/{r}"] for r in range(self.count)]

    def copy(self, dtype: torch.dtype | None = None) -> Replicas:
        """Return the same replicas for a trial, in `dtype` where one is given.

        A forward pass may change the copy's parameters, buffers and random states.
        """
        copied = copy.copy(self)
        copied.flat = self.flat.to(dtype, copy=True)
        others = {name: value.clone() for name, value in self.frozen_and_buffers.items()}
        copied.frozen_and_buffers = others
        if self.random_states is not None:
            copied.random_states = list(self.random_states)
        if dtype is not None:
            copied.template = copy.deepcopy(self.template).to(dtype)
            copied.called = _twin(copied.template)
            copied.frozen_and_buffers = {
                name: value.to(dtype) if value.is_floating_point() else value
                for name, value in others.items()
            }
        return copied

    def first(self, count: int = 1) -> Replicas:
        """Return a copy of the first replicas alone."""
        part = copy.copy(self)
        part.count, part.flat = min(count, self.count), self.flat[:count]
        part.frozen_and_buffers = self.others(slice(count))
        if self.random_states is not None:
            part.random_states = self.random_states[:count]
        return part.copy()


def _twin(module: nn.Module) -> nn.Module:
    """A copy of a module that shares its parameters and buffers.

    The copy is what is called: a module may keep activations of its last call, and torch refuses to
    copy a module that holds some.
    """
    shared = [*module.parameters(), *module.buffers()]
    return copy.deepcopy(module, {id(tensor): tensor for tensor in shared})


def matching(names: list[str], patterns: tuple[str, ...]) -> set[str]:
    """Return the names that any pattern matches; raises UsageError for one that matches none."""
    matched: set[str] = set()
    for pattern in patterns:
        by_pattern = {name for name in names if fnmatchcase(name, pattern)}
        if not by_pattern:
            more = f", … ({len(names)} in all)" if len(names) > LISTED else ""
            known = ", ".join(names[:LISTED]) + more
            raise UsageError(f"--freeze {pattern!r} matches no parameter; known: {known}")
        matched |= by_pattern
    return matched
