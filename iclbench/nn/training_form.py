"""A module's faster form for training, asked for in one place."""

from __future__ import annotations

from torch import nn

from ..api.capabilities import TrainingContext, TrainsFaster
from ..api.errors import PluginError


def training_form(module: nn.Module, context: TrainingContext) -> nn.Module | None:
    """Return the module to call in training: its faster form, or the module itself.

    The module itself is used where it offers no faster form, or where a hook is set on any of its
    parts, since a faster form may skip the part. None means that neither can do what the context
    asks, which happens only for `replicas="leading"`. Raises PluginError for a form with parameters
    of its own, which an optimizer's step would not reach.
    """
    form = None
    if isinstance(module, TrainsFaster) and not has_hooks(module):
        form = module.for_training(context)
    if form is None:
        return None if context.replicas == "leading" else module
    known = {id(parameter) for parameter in module.parameters()}
    for name, parameter in form.named_parameters():
        if id(parameter) not in known:
            raise PluginError(f"{type(form).__name__} holds a parameter of its own: {name}")
    return form


def has_hooks(module: nn.Module) -> bool:
    """Whether a forward or backward hook is set on the module or any of its parts."""
    return any(
        part._forward_hooks
        or part._forward_pre_hooks
        or part._backward_hooks
        or part._backward_pre_hooks
        for part in module.modules()
    )
