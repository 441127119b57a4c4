"""The command line, one verb a file.

Exit codes: 0 done, 1 a run failed, 2 bad usage; of verbs that can be continued, 130 SIGINT and 143
SIGTERM.

It may import every other package. Modules that need torch are imported inside a verb, so that
`--help` is fast.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from importlib import metadata
from typing import Annotated, Any

import typer

from ..api.errors import IclbenchError, UsageError
from ..console import flush_output, prepare_streams, report
from .extra import add_plugin_commands
from .lazy import VERBS, VerbGroup, add_verbs

app = typer.Typer(
    name="iclbench",
    cls=VerbGroup,
    help="A benchmark harness for in-context learning.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)
add_verbs(app)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"iclbench {metadata.version('iclbench')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """A benchmark harness for in-context learning."""


def main() -> None:
    """Run the command line. Errors are printed as one line, without a traceback."""
    prepare_streams()
    # What is made until a verb begins stays: collecting it would take a tenth of the start.
    gc.disable()
    code = 1
    try:
        _require_usable_process()
        add_plugin_commands(app)
        ended = _exit_code()
        flush_output()
        # Only now: output that can't be written is a failure.
        code = ended
    except IclbenchError as error:
        code = error.exit_code
        report(f"error: {error}")
    except KeyboardInterrupt:
        code = 130
        report("interrupted")
    except BrokenPipeError:
        # The reader of the output, such as `head`, has what it wanted.
        code = 1
    except Exception as error:
        if os.environ.get("ICLBENCH_DEBUG"):
            raise
        report(f"error: {_reason(error)}")
    finally:
        gc.enable()
    with contextlib.suppress(OSError):
        flush_output()
    # Python's last collection of all that torch holds would take longer than a small run.
    gc.freeze()
    sys.exit(code)


def _exit_code() -> int:
    """Run the verb that the arguments name; raises UsageError for arguments of the wrong form."""
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="iclbench", standalone_mode=False)
    except SystemExit as end:
        if isinstance(end.code, str):
            report(f"error: {end.code}")
            return 1
        code = end.code
    except typer.Abort:
        report("aborted")
        return 1
    except Exception as error:
        # typer's class of such mistakes is private.
        if not hasattr(error, "format_message"):
            raise
        raise UsageError(_wrong_form(error)) from None
    return code or 0


def _wrong_form(error: Any) -> str:
    """typer's message for wrong arguments on one line, and where the right ones stand."""
    message = " ".join(error.format_message().split()).removesuffix(".")
    message = message.replace(": Value error, ", ": ")  # how typer passes on a ValueError
    context = getattr(error, "ctx", None)
    verb = [word for word in sys.argv[1:2] if word in VERBS]
    path = context.command_path if context else " ".join(["iclbench", *verb])
    see = f" See {path} --help" if message.endswith("?") else f"; see {path} --help"
    return f"{message[:1].lower()}{message[1:]}{see}"


def _require_usable_process() -> None:
    """Raise UsageError if the arguments or the working directory can't be used."""
    for argument in sys.argv[1:]:
        try:
            argument.encode()
        except UnicodeEncodeError:
            encoding = sys.getfilesystemencoding()
            raise UsageError(f"the argument {argument!a} is not valid {encoding} text") from None
    try:
        os.getcwd()
    except OSError:
        raise UsageError("the working directory no longer exists") from None


def _reason(error: Exception) -> str:
    """An unexpected error on one line; those of files are a user's to solve."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error} (ICLBENCH_DEBUG=1 shows the traceback)"
