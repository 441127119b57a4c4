"""The module that training calls in place of the paper's: one decision, checked."""

from __future__ import annotations

from typing import Any

from torch import nn

from ..api.capabilities import TrainingContext, TrainsFaster, offers
from ..api.errors import PluginError


def training_form(module: nn.Module, context: TrainingContext) -> nn.Module | None:
    """Return the module to call in training in place of `module`, perhaps `module` itself.

    None means that the module can't take replicas or be computed at `context.positions` alone.
    A module with a hook is not replaced, since a form may leave out what the hook watches.
    Raises PluginError if the form has other parameters than the module.
    """
    itself = module if context.replicas != "leading" and context.positions is None else None
    if has_hooks(module) or not offers(module, TrainsFaster) or _overrides_forward(module):
        return itself
    faster: Any = module
    form: nn.Module | None = faster.for_training(context)
    if form is None:
        return itself
    _check_parameters(form, module)
    return form


def has_hooks(module: nn.Module) -> bool:
    """Whether a forward or backward hook is set on a module or one of its submodules."""
    return any(
        part._forward_hooks
        or part._forward_pre_hooks
        or part._backward_hooks
        or part._backward_pre_hooks
        for part in module.modules()
    )


def names_in(form: nn.Module, module: nn.Module) -> dict[str, str]:
    """Map the module's parameters and buffers to their names in its training form.

    A buffer that the form does not hold is left out.
    """
    names = {id(tensor): name for name, tensor in _tensors(form).items()}
    return {
        name: names[id(tensor)] for name, tensor in _tensors(module).items() if id(tensor) in names
    }


def _tensors(module: nn.Module) -> dict[str, object]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _overrides_forward(module: nn.Module) -> bool:
    """Whether a subclass, or an instance, has a newer `forward` than `for_training`."""
    if "forward" in vars(module):
        return "for_training" not in vars(module)
    for owner in type(module).__mro__:
        if "for_training" in vars(owner):
            return False
        if "forward" in vars(owner):
            return True
    return False


def _check_parameters(form: nn.Module, module: nn.Module) -> None:
    """Both must hold the same Parameter objects: an optimizer updates the module's alone."""
    theirs = {id(parameter): name for name, parameter in module.named_parameters()}
    own = {id(parameter): name for name, parameter in form.named_parameters()}
    names = [name for key, name in own.items() if key not in theirs]
    if names:
        raise PluginError(
            f"{type(module).__name__}.for_training: {', '.join(names)} of {type(form).__name__} "
            "is no parameter of the module; an optimizer's step would not reach it"
        )
    names = [name for key, name in theirs.items() if key not in own]
    if names:
        raise PluginError(
            f"{type(module).__name__}.for_training: {type(form).__name__} lacks "
            f"{', '.join(names)}, which would get no gradient"
        )
