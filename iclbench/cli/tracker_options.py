"""The options of a verb whose runs trackers may follow."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..api.errors import UsageError
from ..api.options import parse_arguments, parse_names

_OPTIONS = {
    "tracker": Annotated[
        str | None,
        typer.Option("--tracker", metavar="NAME[,NAME]", help="Trackers that follow the runs."),
    ],
    "tracker_args": Annotated[
        list[str] | None,
        typer.Option(
            "--tracker-args", metavar="K=V,…",
            help="Arguments of the tracker, or NAME.K=V for one of several; repeatable.",
        ),
    ],
}  # fmt: skip


def with_tracker_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb that has `out` the options --tracker and --tracker-args."""
    signature = inspect.signature(verb, eval_str=True)

    @functools.wraps(verb)
    def command(
        *, tracker: str | None = None, tracker_args: list[str] | None = None, **values: Any
    ) -> None:
        names = parse_names(tracker or "")
        args = _by_tracker(names, parse_arguments(tracker_args or [], "--tracker-args"))
        if not names:
            verb(**values)
            return
        from ..runs.tracking import tracking

        with tracking(names, out=values["out"], args=args):
            verb(**values)

    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in _OPTIONS.items()
    ]
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values()]
    # typer reads the signature, so this is all it needs.
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters, *added]
    )
    return command


def _by_tracker(names: list[str], args: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The arguments of each tracker; raises UsageError for those of none."""
    chosen: dict[str, dict[str, Any]] = {}
    for key, value in args.items():
        owner, dot, rest = key.partition(".")
        if not names:
            raise UsageError("--tracker-args needs --tracker")
        if not dot and len(names) == 1:
            owner, rest = names[0], key
        elif owner not in names:
            raise UsageError(f"--tracker-args: {key!r} matches none of {', '.join(names)}")
        chosen.setdefault(owner, {})[rest] = value
    return chosen
