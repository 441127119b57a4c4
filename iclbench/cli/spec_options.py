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

    The verb receives the values that are given as its parameter `spec`, a dictionary for RunSpec to
    validate, and the command's `context` if it has such a parameter. RunSpec has the same defaults
    as the options.
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

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    declared = [p for name, p in signature.parameters.items() if name not in {"context", "spec"}]
    required = [p for p in declared if p.default is p.empty]
    generated = [_parameter(name, option) for name, option in options.items()]
    others = [p for p in declared if p not in required]
    # typer reads the signature, so this is all it needs.
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            p.replace(kind=p.KEYWORD_ONLY) for p in (context, *required, *generated, *others)
        ]
    )
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
