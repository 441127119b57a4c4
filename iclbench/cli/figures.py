"""`iclbench leaderboard figure`: a study's figure, or one of any records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..api.errors import UsageError, unknown
from ..api.options import parse_names
from ..console import report
from ..sweeps.record_paths import record_paths
from .common import end_with, options_given, show_table
from .paths import usable_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..api.record import Record
    from ..sweeps.figure import Figure

#: What a figure can be of, in the words of messages.
STUDY, X, MAPS = "a study or a sweep file", "records and --x", "records and --maps"
#: The options that belong to some of those only; the others belong to all.
ONLY_WITH = {
    "records": (STUDY,),
    "size": (STUDY,),
    "y": (X,),
    "statistic": (X,),
    "panels": (X,),
    "lines": (X, MAPS),
}

What = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME|FILE|PATH",
        help="A study's name or a sweep file; with --x or --maps, records or folders of records. "
        "Default: list the studies.",
    ),
]
Kind = Annotated[
    str,
    typer.Option(
        "--format", metavar="html|svg|pdf|png", help="Format.  [default: from --file, or html]"
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The file to write.  [default: NAME.FORMAT]", parser=usable_path
    ),
]
Records = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The study's records.  [default: its own folder; the published one if it has none]",
        parser=usable_path,
    ),
]
Size = Annotated[str, typer.Option(metavar="NAME", help="The study's size.")]
Axis = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The x-axis: a setting such as model_args.layers; state_bytes (the size of a layer's "
        "state); curve (the metric's second axis); training (loss by step); or operations, seconds "
        "or steps (validation by cost).",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,NAME]", help="With --x: metrics, one panel each; default: the task's."
    ),
]
Statistic = Annotated[
    Literal["mean", "median"] | None,
    typer.Option(
        metavar="mean|median",
        help="With --x: the statistic to draw.  [default: depends on the metric]",
    ),
]
Lines = Annotated[
    str,
    typer.Option(
        metavar="FIELD[,FIELD]", help="With --x or --maps: fields; each value gets its own line."
    ),
]
Panels = Annotated[
    str,
    typer.Option(metavar="FIELD[,FIELD]", help="With --x: fields; each value gets its own panel."),
]
Maps = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Draw this metric's maps instead, one row per record."),
]


def figure(
    context: typer.Context,
    what: What = None,
    kind: Kind = "",
    file: File = None,
    records: Records = None,
    size: Size = "quick",
    x: Axis = None,
    y: Metrics = None,
    statistic: Statistic = None,
    lines: Lines = "model",
    panels: Panels = "",
    maps: Maps = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="The figure's title.")] = "",
) -> None:
    """Draw a study's figure from its records, or with --x a figure of any records."""
    _require_use(context, what or [], x, maps)
    if not what:
        _list_studies()
    elif x is not None or maps is not None:
        options = {
            "x": x,
            "y": y and parse_names(y),
            "statistic": statistic,
            "lines": parse_names(lines),
            "panels": parse_names(panels),
            "maps": maps,
            "title": title,
        }
        _figure_of_records(what, options, file, kind)
    elif len(what) > 1 or _is_only_a_folder(what[0]):
        raise UsageError("give the name of one study, or --x with records or their folders")
    else:
        _figure_of_study(what[0], size, records, title, file, kind)


def _is_only_a_folder(name: str) -> bool:
    """Whether it is a folder and no study has this name."""
    from ..leaderboards.studies import names_of_studies
    from ..plugins import host

    return Path(name).is_dir() and name not in names_of_studies(host())


def _require_use(context: typer.Context, what: list[str], x: str | None, maps: str | None) -> None:
    """Raise UsageError for an option that would be ignored."""
    given = options_given(context)
    if not what and given:
        raise UsageError(f"{next(iter(given.values()))} needs a study, a sweep file or records")
    if x is not None and maps is not None:
        raise UsageError("give either --x or --maps, not both")
    use = X if x is not None else MAPS if maps is not None else STUDY
    for name, flag in given.items():
        if use not in ONLY_WITH.get(name, (use,)):
            raise UsageError(f"{flag} works only with {' or '.join(ONLY_WITH[name])}")
    for path in what if use != STUDY else ():
        if path.endswith(".toml"):
            raise UsageError(
                f"{path} is a sweep file, whose [figure] says what is drawn: --x and --maps take "
                "records or folders of records"
            )


def _figure_of_study(
    name: str, size: str, records: Path | None, title: str, file: Path | None, kind: str
) -> None:
    from ..leaderboards.studies import caption, find_study, study_records
    from ..plugins import host

    study = find_study(name, host())
    sweep, result, folder = study_records(study, size, records)
    if sweep.figure is None:
        raise UsageError(f"{study.path} has no figure")
    if records is None:
        report(f"{study.name}: the records of {folder}")
    described = sweep.figure.model_copy(update={"title": title} if title else {})
    about = caption(study.caption or described.title, result.records, result.missing)
    _write(described, result.records, about, _path(file, kind, study.name.replace("/", "-")))
    end_with(result.damaged)


def _list_studies() -> None:
    from ..display.table import Column, Table
    from ..leaderboards.studies import studies
    from ..plugins import host

    rows = [{"study": study.name, "shows": study.caption} for study in studies(host())]
    show_table(Table((Column("study"), Column("shows", fit="wrap")), rows))


def _figure_of_records(
    paths: list[str], options: dict[str, Any], file: Path | None, kind: str
) -> None:
    from ..api.config import parse_config
    from ..leaderboards.figures.order import by_settings
    from ..leaderboards.figures.panels import drawn
    from ..leaderboards.reading import sound_records
    from ..leaderboards.studies import caption
    from ..sweeps.figure import Figure

    problems: list[str] = []
    sound = sound_records(record_paths([Path(p) for p in paths]), problems.append)
    records = by_settings(record for _, record in sound)
    if problems and not records:
        end_with(problems)
    described = parse_config(Figure, options, "figure")
    about = caption(described.title, drawn(described, records))
    _write(described, records, about, _path(file, kind, "figure"))
    end_with(problems)


def _path(file: Path | None, kind: str, name: str) -> tuple[Path, str]:
    """The file to write and its format; raises UsageError for an unknown format."""
    from ..leaderboards.figures.export import FORMATS

    ending = file.suffix.removeprefix(".") if file else "html"
    kind = kind or ending
    if not kind:
        raise UsageError(f"{file} has no ending that names a format: give --format")
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS)
    if file and ending in FORMATS and ending != kind:
        raise UsageError(f"{file} would hold {kind}, not {ending}: change --file or --format")
    return file or Path(f"{name}.{kind}"), kind


def _write(figure: Figure, records: Sequence[Record], about: str, target: tuple[Path, str]) -> None:
    from ..leaderboards.figures.draw import draw
    from ..leaderboards.figures.export import write_figure

    path, kind = target
    write_figure(draw(figure, records), path, kind, about)
    typer.echo(f"figure: {path}\n{about}")
