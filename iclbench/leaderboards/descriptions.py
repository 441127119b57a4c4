"""Descriptions: what pages say of tasks and models, from the plugins that are installed.

A task or model whose plugin is not installed, or says nothing of it, is called by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..api.about import ABOUT_FILE, About, AboutFile, ModelAbout, Paper, TaskAbout, Words
from ..api.errors import UsageError
from ..console import capitalized
from ..discovery import Plugin
from ..plugins import PluginHost, host
from . import wording
from .board import Board
from .documents import read_document
from .reading import Refused

#: The group of tasks that name none.
OTHER = "Other tasks"


@dataclass(frozen=True)
class Description:
    """A task or a model on a page; texts are empty where nothing is known."""

    name: str
    title: str
    text: str = ""
    formula: str = ""
    papers: tuple[tuple[str, Paper], ...] = ()
    #: Of a task: the family that it is shown with, and the metrics' names in words.
    group: str = OTHER
    metrics: Mapping[str, str] = field(default_factory=dict)
    #: Of a model: what a layer keeps of a prompt.
    state: str = ""
    #: Of a model: what it is given of a prompt; empty for one that reads tokens.
    reads: str = ""
    #: The plugin that provides it, with its distribution and version.
    plugin: str = ""
    #: Its arguments in words.
    arguments: Mapping[str, Words] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """What lists of titles are sorted by."""
        return self.title.casefold()

    def metric(self, name: str) -> str:
        """A metric's name in words."""
        return self.metrics.get(name, name.replace("_", " "))

    def axis(self, name: str) -> str:
        """What an axis is called that shows an argument, or what a metric's curve runs along."""
        return wording.axis(self.arguments, name)

    def settings(self, arguments: Mapping[str, Any]) -> str:
        """Arguments in words, on a line."""
        return wording.settings(self.arguments, arguments)

    def list_of_settings(self, arguments: Mapping[str, Any]) -> list[str]:
        """Each argument in words."""
        return wording.list_of_settings(self.arguments, arguments)


class Descriptions:
    """The descriptions of all tasks and models of the installed plugins."""

    def __init__(
        self, refused: Refused, plugins: PluginHost | None = None, drawn: Iterable[str] = ()
    ) -> None:
        """Read the plugins' files; `refused` gets a line for each that is not valid.

        The models of `drawn` have the first hues, in their order.
        """
        self._tasks: dict[str, Description] = {}
        self._models: dict[str, Description] = {}
        #: The names in words of what plugins measure on any task.
        self._metrics: dict[str, str] = {}
        for plugin in (plugins or host()).plugins:
            try:
                file = read_about(plugin)
            except UsageError as error:
                refused(str(error))
                file = AboutFile()
            self._tasks |= {d.name: d for d in _described(plugin, "task", file, file.tasks)}
            self._models |= {d.name: d for d in _described(plugin, "model", file, file.models)}
            self._metrics |= file.metrics
        ordered = dict.fromkeys([*drawn, *sorted(self._models)])
        self._hues = {name: hue for hue, name in enumerate(ordered)}

    def task(self, name: str) -> Description:
        """What pages say of a task."""
        about = self._tasks.get(name) or Description(name, name)
        return replace(about, metrics={**self._metrics, **about.metrics})

    def model(self, name: str) -> Description:
        """What pages say of a model."""
        return self._models.get(name) or Description(name, name)

    def hue(self, model: str) -> int:
        """The number of a model's color and dashes, the same in every figure of a site."""
        return self._hues.setdefault(model, len(self._hues))

    def metric_of(self, board: Board) -> str:
        """The metric that ranks a board, in words."""
        return self.task(board.task).metric(board.ranking.metric)


def read_about(plugin: Plugin) -> AboutFile:
    """The plugin's file, empty if it has none; raises UsageError if it is not valid."""
    path = about_path(plugin)
    return AboutFile() if path is None else read_document(path, AboutFile)


def about_path(plugin: Plugin) -> Path | None:
    """The plugin's file, or None if it has none."""
    paths = (folder / ABOUT_FILE for folder in plugin.folders)
    return next((path for path in paths if path.is_file()), None)


def _described(
    plugin: Plugin, kind: str, file: AboutFile, known: dict[str, TaskAbout] | dict[str, ModelAbout]
) -> Iterator[Description]:
    for entry in plugin.entries.get(kind, ()):
        about: About | None = known.get(entry.name)
        if about is None:
            summary = capitalized(entry.summary)
            yield Description(entry.name, entry.name, f"{summary}.", plugin=plugin.label,
                              arguments=file.arguments)  # fmt: skip
            continue
        yield Description(
            entry.name,
            about.title,
            about.text,
            about.formula,
            tuple((key, file.papers[key]) for key in about.papers),
            group=about.group if isinstance(about, TaskAbout) else OTHER,
            metrics=about.metrics if isinstance(about, TaskAbout) else {},
            state=about.state if isinstance(about, ModelAbout) else "",
            reads=about.reads if isinstance(about, ModelAbout) else "",
            plugin=plugin.label,
            arguments={**file.arguments, **about.arguments},
        )
