"""Wording: the arguments of tasks and models as a reader says them, such as D = 5, N = 20.

And the time of a budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.about import Words
from ..api.budget import Budget
from ..console import counted
from . import formats
from .arguments import argument, in_label

#: Arguments that many models and tasks share; a plugin's own words come before them.
HARNESS: Mapping[str, Words] = {
    "task_seed": {"0": "", "*": "task seed {}"},
    "layers": {"1": "1 layer", "*": "{} layers"},
    "width": "width {}",
    "heads": {"1": "1 head", "*": "{} heads"},
    "layer_norm": {"true": "LayerNorm", "false": "no LayerNorm"},
    "mlp": {"true": "MLP", "false": "no MLP"},
    "mlp_ratio": "MLP ratio {}",
    "causal": {"true": "causal", "false": "not causal"},
    "init_std": "initial σ = {}",
    "learning_rate": "learning rate {}",
    "steps": {"1": "1 step", "*": "{} steps"},
}
#: The units in which a budget is written.
_UNITS = {"s": "second", "m": "minute", "h": "hour"}
#: Stands for the value in a text, and for all values that have no text of their own.
VALUE, OTHERS = "{}", "*"


def setting(words: Mapping[str, Words], name: str, value: Any) -> str:
    """An argument in words, as `name=value` where there are none, or empty if not worth saying."""
    text = _text(words, name, value)
    if text is None:
        return f"{name}={argument(value)}"
    # Spaces that don't break keep `N = 20` on one line.
    return text.replace(VALUE, _shown(value)).replace(" = ", "\u00a0=\u00a0")


def settings(words: Mapping[str, Words], arguments: Mapping[str, Any]) -> str:
    """Arguments in words, on a line; see `list_of_settings`."""
    return ", ".join(list_of_settings(words, arguments))


def list_of_settings(words: Mapping[str, Words], arguments: Mapping[str, Any]) -> list[str]:
    """Each argument in words; those that are null or not worth saying are left out."""
    texts = (setting(words, name, value) for name, value in arguments.items() if value is not None)
    return list(filter(None, texts))


def axis(words: Mapping[str, Words], name: str) -> str:
    """What an axis with an argument's values is called."""
    text = words.get(name, HARNESS.get(name))
    if isinstance(text, Mapping):
        text = text.get(OTHERS)
    if not text or not (text.startswith(VALUE) or text.endswith(VALUE)):
        return formats.in_words(name)
    return text.replace(VALUE, "").strip(" =") or formats.in_words(name)


def duration(budget: Budget, kind: str = "") -> str:
    """The time that a seed has, such as `10 minutes`, or `10 core minutes` of a kind of time."""
    text = str(budget).removeprefix("gpu-")
    return counted(int(text[:-1]), f"{kind} {_UNITS[text[-1]]}".lstrip())


def _text(words: Mapping[str, Words], name: str, value: Any) -> str | None:
    text = words.get(name, HARNESS.get(name))
    if isinstance(text, Mapping):
        return text.get(argument(value), text.get(OTHERS))
    return text


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else in_label(value)
