"""Modules whose parameters are the rows of the stacked matrix, in their form for training."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from ...api.capabilities import TrainingContext
from ...api.errors import PluginError
from ...nn.training_form import tensors_of, training_form
from ..replicas import Replicas


class Bound:
    """A module whose parameters are views of one replica's row, or of several replicas' rows.

    It is made once: passing parameters to a module at every step costs a small model as much as its
    arithmetic. `leaves` are the trained parameters, to differentiate in.
    """

    def __init__(self, replicas: Replicas, rows: int | slice, context: TrainingContext) -> None:
        """Bind a copy of the template; raises NoFormError where it can't take several replicas."""
        module, form = form_of(replicas, context)
        if form is None:
            raise NoFormError
        tensors = {**replicas.views(rows), **replicas.others(rows)}
        named = tensors_of(module)
        for name, tensor in named.items():
            # Shares memory with `flat`, so an update of `flat` is one of the module.
            tensor.data = tensors[name].data
        self.leaves: list[Tensor] = [named[name].requires_grad_() for name in replicas.shapes]
        self._form = form
        self._slots = [
            (slots, key, tensor, tensor.data_ptr())
            for part in form.modules()
            for slots in (part._parameters, part._buffers)
            for key, tensor in slots.items()
            if tensor is not None
        ]

    def __call__(self, prompt: Any) -> Any:
        """Return the prediction.

        Raises ReplacedError where the forward pass has put another tensor in the place of a
        parameter or buffer: the module then no longer shares memory with its rows.
        """
        prediction = self._form(prompt)
        for slots, key, tensor, pointer in self._slots:
            if slots.get(key) is not tensor or tensor.data_ptr() != pointer:
                raise ReplacedError(
                    f"a forward pass replaced {key} by another tensor (--engine plain allows that)"
                )
        return prediction


class NoFormError(Exception):
    """The module has no form that takes several replicas at once."""


class ReplacedError(PluginError):
    """A forward pass replaces a parameter or buffer by another tensor."""


def form_of(replicas: Replicas, context: TrainingContext) -> tuple[nn.Module, nn.Module | None]:
    """Return a copy of the template, which has the paper's names, and its form for training.

    The form is None where the module can't take replicas as a leading dimension.
    """
    module = copy.deepcopy(replicas.template)
    context = replace(context, device=replicas.flat.device, dtype=replicas.flat.dtype)
    return module, training_form(module, context)
