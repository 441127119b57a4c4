"""The options of a verb that takes a spec, generated from the fields of RunSpec."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..api.options import Option
from ..api.spec import RunSpec, flag, spec_options
from .common import options_given

#: Options of commands that train, beside those of a spec.
_OF_TRAINING = {"tune", "trials", "tuned", "engine", "resume", "checkpoint_seconds"}


def with_spec_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb an option for every field of RunSpec that it doesn't declare.

    The options stand in the place of the verb's parameter `spec`, which receives the values that
    are given, a dictionary for RunSpec to validate. RunSpec has the same defaults as the options.
    The verb also receives the command's `context`, if it has such a parameter.
    """
    signature = inspect.signature(verb, eval_str=True)
    options = {
        name: option for name, option in spec_options().items() if name not in signature.parameters
    }

    @functools.wraps(verb)
    def command(context: typer.Context, **values: Any) -> None:
        spec = {}
        for name, option in options.items():
            given, source = values.pop(name), context.get_parameter_source(name)
            texts = [given] if isinstance(given, str) else given
            if texts and source is not None and source.name != "DEFAULT":
                spec[name] = option.read(texts, flag(name))
        if "context" in signature.parameters:
            values["context"] = context
        verb(spec=spec, **values)

    parameters = [
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    ]
    for name, parameter in signature.parameters.items():
        if name == "spec":
            parameters += [_parameter(of_spec, option) for of_spec, option in options.items()]
        elif name != "context":
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
    # typer reads the signature, so this is all it needs.
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def training_options(context: typer.Context) -> list[str]:
    """The options given that matter only where something is trained."""
    # A recipe has arguments of the task too.
    training = {name for name, option in spec_options().items() if option.training} - {"recipe"}
    given = options_given(context)
    return [given[name] for name in sorted(given.keys() & (training | _OF_TRAINING))]


def _parameter(name: str, option: Option) -> inspect.Parameter:
    """A parameter that typer turns into the field's option; its value is text."""
    field = RunSpec.model_fields[name]
    description = field.description or name
    text = f"{description[0].upper()}{description[1:]}{option.note}."
    info = typer.Option(flag(name), metavar=option.metavar, help=text)
    texts = [] if field.is_required() else option.write(field.default)
    kind: Any = list[str] | None if option.repeatable else str | None
    default: Any = (texts or None) if option.repeatable else next(iter(texts), None)
    if field.is_required():
        kind, default = str, inspect.Parameter.empty
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )
