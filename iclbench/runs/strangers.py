"""What a stranger's record may not ask of the machine that verifies it.

Verifying a record builds its task, its model and its recipe from its arguments. These could name
any file of the machine, a download, code to import, or more sizes than fit into memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..api.errors import RecordError
from ..api.names import visible
from ..api.record import Record
from ..api.spec import RunSpec
from ..plugins import host
from .sizes import LARGEST_ARGUMENT

#: Arguments that are addresses, which nothing reads to verify a record.
ADDRESSES = frozenset({"base_url"})
#: Packages of optimizers that any record may name, besides those of plugins.
OPTIMIZERS = ("torch.optim", "pytorch_optimizer")

#: How to use a record all the same.
TRUSTED = "; --trust (trusted=True) allows it, for records of people whom you trust"

_WHOLE_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def require_harmless(record: Record, hint: str = "") -> None:
    """Raise RecordError for a record that names data, foreign code or an enormous size.

    Data are a file, a folder or a dataset of the hub; code is an optimizer of a package that
    iclbench does not know. `hint` ends the message.
    """
    request, spec = RunSpec.from_command(record.command), record.spec
    of_command = request.task_args, request.model_args, request.weights_args, request.grader_args
    # The models of a file have arguments that the command does not name.
    for args in (*of_command, spec.task_args, spec.model_args, spec.weights_args, spec.grader_args):
        require_shipped_data(args, hint)
        require_small_numbers(args)
    tuning = None if record.tuning is None else record.tuning.model_dump(mode="json")
    for name in _optimizers([record.spec.model_dump(mode="json"), request.recipe_args, tuning]):
        if not _is_known(name):
            raise RecordError(f"optimizer={visible(name, 100)} names code to import{hint}")


def require_shipped_data(args: Mapping[str, Any], hint: str = "") -> None:
    """Raise RecordError for an argument that names a file, a folder or a dataset of the hub."""
    for name, text in _texts(args):
        parts = () if name in ADDRESSES else text.split("+")
        for part in filter(_names_data, parts):
            raise RecordError(f"{name}={visible(part, 100)} names data that no package ships{hint}")


def _names_data(text: str) -> bool:
    if not text:  # as a path it would be the current folder
        return False
    # Unlike Path.exists, this is False for a text that is too long for a file's name.
    return text.startswith((".", "~")) or "/" in text or "\\" in text or os.path.exists(text)


def require_small_numbers(args: Mapping[str, Any]) -> None:
    """Raise RecordError for an enormous number within a text, such as `sizes=2-999999999`.

    A task or a model checks its numbers when it has read the text, which may take the memory.
    """
    for name, text in _texts(args):
        for number in _WHOLE_NUMBER.findall(text):
            if len(number) > len(str(LARGEST_ARGUMENT)) or int(number) > LARGEST_ARGUMENT:
                raise RecordError(f"{name}={visible(text, 100)} is too large")


def _texts(args: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each text among the arguments, with the name of its argument."""
    for name, value in args.items():
        items = value if isinstance(value, list | tuple) else [value]
        for item in items:
            if isinstance(item, str):
                yield name, item
            elif isinstance(item, Mapping | list | tuple):
                content = item if isinstance(item, Mapping) else {name: item}
                yield from ((name, text) for _, text in _texts(content))


def _optimizers(content: Any) -> Iterator[str]:
    """The names of optimizers in a recipe's arguments, a spec or a tuning."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            if key == "optimizer" and isinstance(value, str):
                yield value
            elif key == "optimizers" and isinstance(value, list):
                named = (item for item in value if isinstance(item, Mapping) and "name" in item)
                yield from (str(item["name"]) for item in named)
            yield from _optimizers(value)
    elif isinstance(content, list | tuple):
        for item in content:
            yield from _optimizers(item)


def _is_known(optimizer: str) -> bool:
    """Whether it is built in, or of a package that is known; `_` begins what runs as a program."""
    parts = optimizer.split(".")
    if len(parts) == 1:
        return True
    packages = [*OPTIMIZERS, *_plugin_packages()]
    is_there = any(optimizer.startswith(f"{package}.") for package in packages)
    return is_there and not any(part.startswith("_") for part in parts)


def _plugin_packages() -> set[str]:
    """The top packages of the plugins that work."""
    modules = (plugin.module for plugin in host().plugins if not plugin.problem)
    return {module.partition(":")[0].partition(".")[0] for module in modules}
