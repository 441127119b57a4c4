"""The choice of the module that training calls in place of the paper's."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ..api.capabilities import TrainingContext, TrainsFaster, offers
from ..api.errors import PluginError


def training_form(module: nn.Module, context: TrainingContext) -> nn.Module | None:
    """Return the module to call in training in place of `module`, possibly `module` itself.

    None means that the module can't take leading replicas or compute only `context.positions`.
    A module with a hook is not replaced, because a form may skip what the hook observes. Raises
    PluginError if the form's parameters are not the module's.
    """
    # The module itself is a valid answer only if nothing special is asked of the form.
    unchanged = module if context.replicas != "leading" and context.positions is None else None
    if has_hooks(module) or not offers(module, TrainsFaster) or _overrides_forward(module):
        return unchanged
    trains_faster: Any = module
    form: nn.Module | None = trains_faster.for_training(context)
    if form is None:
        return unchanged
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
    """Map names of the module's parameters and buffers to their names in its training form.

    A buffer that the form lacks is left out.
    """
    # Matched by identity: a form shares the tensors but may name them otherwise.
    names = {id(tensor): name for name, tensor in tensors_of(form).items()}
    return {
        name: names[id(tensor)]
        for name, tensor in tensors_of(module).items()
        if id(tensor) in names
    }


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a module, each under its first name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _overrides_forward(module: nn.Module) -> bool:
    """Whether a subclass or the instance overrides `forward` but not `for_training`.

    The inherited form would still compute the old `forward`.
    """
    if "forward" in vars(module):
        return "for_training" not in vars(module)
    # The most derived class that defines either of the two decides.
    for owner in type(module).__mro__:
        if "for_training" in vars(owner):
            return False
        if "forward" in vars(owner):
            return True
    return False


def _check_parameters(form: nn.Module, module: nn.Module) -> None:
    """Raise PluginError unless both hold the same Parameter objects.

    An optimizer updates only the module's parameters.
    """
    in_module = {id(parameter): name for name, parameter in module.named_parameters()}
    in_form = {id(parameter): name for name, parameter in form.named_parameters()}
    names = [name for key, name in in_form.items() if key not in in_module]
    if names:
        raise PluginError(
            f"{type(module).__name__}.for_training: {', '.join(names)} of {type(form).__name__} "
            "is not a parameter of the module, so an optimizer's step would not reach it"
        )
    names = [name for key, name in in_module.items() if key not in in_form]
    if names:
        raise PluginError(
            f"{type(module).__name__}.for_training: {type(form).__name__} lacks "
            f"{', '.join(names)}, which would get no gradient"
        )
