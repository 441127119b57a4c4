"""A module on one replica's rows of the stacked parameters, or on several's."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor, nn


class Bound:
    """A copy of a module on rows of the parameters, `module`, and its trained ones, `leaves`.

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
        self.forms: dict[Any, nn.Module | None] = {}  # by context, see Replicas.form_of
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
