"""A suite's figures: the mean of comparable models against their parameters and their state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...api.record import Record
from ..descriptions import Descriptions
from ..row import OPEN
from ..scale import Score
from ..sizes import known_parameters
from ..suite_means import mean_score
from ..suite_score import SuiteRow
from .figure import View, figure
from .plots import Plot, plot

#: A figure is of at least so many models, and its title names at most so many boards.
LEAST_MODELS, MOST_NAMED = 4, 4


def suite_title(entry: SuiteRow, about: Descriptions) -> str:
    """The entry's label, with the title of its model for the name."""
    model = next(iter(entry.records.values())).spec.model
    return entry.label.replace(model, about.model(model).title, 1)


def mean_plots(
    entries: Sequence[SuiteRow], titles: Mapping[str, str], about: Descriptions
) -> list[View]:
    """The mean of comparable models against their parameters and the state of a layer.

    `titles` are those of the suite's boards.
    """
    return [drawn for group in _groups(entries) for drawn in _plots_of(group, titles, about)]


def _plots_of(group: _Group, titles: Mapping[str, str], about: Descriptions) -> list[View]:
    names = [titles[name] for name in group.boards]
    over = ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} boards"
    sizes: dict[str, Callable[[Record], float | None]] = {
        "parameters": known_parameters,
        "state": lambda record: record.state_bytes,
    }
    axes = {"parameters": "parameters", "state": "state of a layer after a prompt, bytes"}
    if len(names) > 1:
        # A model has another size on each board.
        axes = {"parameters": "parameters (most of any board)",
                "state": "state of a layer, bytes (most of any board)"}  # fmt: skip
    drawn = []
    for what, size in sizes.items():
        lines = []
        for entry in group.members:
            records = [entry.records[name] for name in group.boards]
            known = [value for record in records if (value := size(record))]
            if known:
                name, mean = suite_title(entry, about), group.mean(entry)
                hue = about.hue(records[0].spec.model)
                lines.append(_point(name, max(known), mean) | {"hue": hue})
        if len(lines) >= LEAST_MODELS:
            title = f"Score on {over} against {what}, track {group.track}"
            y = "mean score, % from chance to reference"
            drawn.append(figure(plot(title, axes[what], y, lines, log=False, log_x=True)))
    return drawn


def _point(name: str, x: float, mean: Score) -> Plot:
    """A mean in percent, with its interval."""
    low, y, high = (
        None if value is None else 100 * value for value in (mean.low, mean.value, mean.high)
    )
    return {"name": name, "x": [x], "y": [y], "low": [low], "high": [high]}


@dataclass(frozen=True)
class _Group:
    """Models of one track with scores on the same boards, whose means can be compared."""

    track: str
    boards: tuple[str, ...]
    members: tuple[SuiteRow, ...]

    def mean(self, entry: SuiteRow) -> Score:
        """The entry's mean over the group's boards, with its interval."""
        mean = mean_score(score for name in self.boards if (score := entry.scores.get(name)))
        assert mean is not None
        return mean


def _groups(entries: Sequence[SuiteRow]) -> list[_Group]:
    """The group with the most scores and that with the most models, of those with enough models."""
    scored = [(entry.track, tuple(sorted(entry.counted)), entry) for entry in entries]
    # Rows without a track chose their own budgets.
    kinds = dict.fromkeys((track, has) for track, has, _ in scored if has and track != OPEN)
    groups = []
    for track, boards in kinds:
        members = tuple(e for t, has, e in scored if t == track and set(has) >= set(boards))
        groups.append(_Group(track, boards, members))
    large = [group for group in groups if len(group.members) >= LEAST_MODELS]
    if not large:
        return []
    most_scores = max(large, key=lambda g: (len(g.members) * len(g.boards), len(g.boards)))
    most_models = max(large, key=lambda g: (len(g.members), len(g.boards)))
    return [most_scores] if most_models is most_scores else [most_scores, most_models]
