"""The plugins that take part in a run, each once: those that train, and those that measure."""

from __future__ import annotations

from collections.abc import Iterable

from ..api.spec import RunSpec
from ..discovery import Plugin
from ..plugins import host


def training_plugins(
    request: RunSpec, models: Iterable[str], *, with_recipe: bool
) -> tuple[Plugin, ...]:
    """The plugins that a training follows from; `models` are those that the model is made of.

    `with_recipe`: whether the recipe is a plugin's, and is used.
    """
    names = [("task", request.task), ("model", request.model)]
    names += [("model", name) for name in models]
    names += [("recipe", request.recipe)] if with_recipe else []
    return _providers(names)


def measuring_plugins(request: RunSpec) -> tuple[Plugin, ...]:
    """The plugins of the requested metrics and of the grader."""
    names = [("metric", name) for name in request.metrics]
    return _providers([*names, *([("grader", request.grader)] if request.grader else [])])


def each_once(plugins: Iterable[Plugin]) -> tuple[Plugin, ...]:
    """Plugins in order, without those that came before."""
    return tuple({plugin.name: plugin for plugin in plugins}.values())


def _providers(names: Iterable[tuple[str, str]]) -> tuple[Plugin, ...]:
    return each_once(host().provider(kind, name)[0] for kind, name in names)
