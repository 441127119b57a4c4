"""Campaign files: stages in TOML, each of boards of a suite or of sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ...api.config import Config, parse_config
from ...api.errors import UsageError, unknown
from ...api.names import is_plain_name
from ...console import shell_path
from ...files import read_toml
from ..fields import IS_TABLE, Names, tables_named
from ..files import QUICK, Fields, with_parsed_seeds
from ..tuning.settings import SearchSettings
from ..tuning.trials import MOST_TRIALS, TRIALS


def _models(value: Any) -> Any:
    groups = value if isinstance(value, list | tuple) else [None]
    names = [n for group in groups for n in (group if isinstance(group, list | tuple) else [group])]
    if not all(isinstance(name, str) for name in names):
        raise ValueError("a list of names is needed, or of lists of names")
    return value


Models = Annotated[tuple[str | tuple[str, ...], ...], BeforeValidator(_models)]
FieldsByModel = Annotated[dict[str, Fields], IS_TABLE]


class SweepEntry(Config):
    """A sweep of a stage; it runs in one process, as its grids may need each other's weights."""

    file: Path = Field(description="sweep file, relative to the campaign's")
    size: str = QUICK
    out: str = Field(description="folder of its records, below `sweeps` in the output folder")
    hours: float = Field(0.0, ge=0, description="estimate for the cells without a budget")

    @model_validator(mode="after")
    def _folder_is_plain(self) -> SweepEntry:
        if not is_plain_name(self.out):
            raise ValueError(f"{self.out!r} is not a plain name of a folder")
        return self


class CampaignStage(Config):
    """Models that get a row on boards of a suite, or sweeps."""

    name: str
    summary: str = Field(description="one line")
    suite: str | None = Field(None, description="name, or a TOML file, relative to the campaign's")
    boards: Names | None = Field(
        None, description="boards of the suite, in this order; default: all"
    )
    models: Models = Field(
        (), description="from a nested list, the first model that supports the board"
    )
    winner_of: str | None = Field(
        None, description="an earlier stage whose best tuned model runs here instead of `models`"
    )
    apart: bool = Field(
        False, description="with winner_of: run each seed in its own process and merge them"
    )
    fields: Fields = Field({}, description="fields of a run that override the suite's")
    model_args: FieldsByModel = Field({}, description="arguments of each model")
    sweep: Annotated[tuple[Annotated[SweepEntry, IS_TABLE], ...], tables_named("stage.sweep")] = ()

    @field_validator("fields")
    @classmethod
    def _parse_seeds(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            return with_parsed_seeds(value)
        except UsageError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _has_one_content(self) -> CampaignStage:
        models = bool(self.models) + (self.winner_of is not None)
        if (self.suite is not None) != bool(models) or models > 1:
            raise ValueError(f"stage {self.name}: a suite needs either models or winner_of")
        if any(not group for group in self.models):
            raise ValueError(f"stage {self.name}: an empty list of models")
        if self.boards == ():
            raise ValueError(f"stage {self.name}: an empty list of boards")
        if "model" in self.fields:
            raise ValueError(f"stage {self.name}: give models, not fields.model")
        if "model_args" in self.fields:
            raise ValueError(f"stage {self.name}: give model_args.NAME, not fields")
        if self.apart and self.winner_of is None:
            raise ValueError(f"stage {self.name}: apart needs winner_of, whose tuning is known")
        if (self.suite is None) == (not self.sweep):
            raise ValueError(f"stage {self.name}: it needs either a suite or sweeps")
        return self

    @property
    def names(self) -> list[str]:
        """The models that it names, also those that stand in for others."""
        return [name for group in self.groups for name in group]

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The models in the order of its list, each with those that stand in for it."""
        return [(entry,) if isinstance(entry, str) else entry for entry in self.models]


class Campaign(Config):
    """An ordered list of stages; what is trained on a suite is tuned first."""

    trials: int = Field(
        TRIALS, ge=0, le=MOST_TRIALS, description="trials per tuning; 0: nothing is tuned"
    )
    search_seed: int = Field(0, ge=0, description="seed of the tunings")
    space: FieldsByModel = Field({}, description="changes to each model's search space")
    published: Path | None = Field(
        None, description="folder of published boards, relative to the file; its rows count as done"
    )
    stage: Annotated[tuple[Annotated[CampaignStage, IS_TABLE], ...], tables_named("stage")]

    @model_validator(mode="after")
    def _stages_fit(self) -> Campaign:
        if not self.stage:
            raise ValueError("a campaign needs at least one [[stage]]")
        names = [stage.name for stage in self.stage]
        if len({*names}) < len(names):
            raise ValueError("two stages have the same name")
        for number, stage in enumerate(self.stage):
            if stage.winner_of is not None and stage.winner_of not in names[:number]:
                raise ValueError(f"stage {stage.name}: no earlier stage is {stage.winner_of!r}")
            if stage.winner_of is not None and not self.trials:
                raise ValueError(f"stage {stage.name}: winner_of needs trials, which choose it")
        models = {name for stage in self.stage for name in stage.names}
        for stage in self.stage:
            for name in sorted(stage.model_args.keys() - ({*stage.names} or models)):
                raise ValueError(f"stage {stage.name}: model_args has {name!r}, which it lacks")
        for name in sorted(self.space.keys() - models):
            raise ValueError(f"space has {name!r}, a model of no stage")
        folders = [entry.out for stage in self.stage for entry in stage.sweep]
        if len({*folders}) < len(folders):
            # Two processes would write to one store.
            raise ValueError("two sweeps have the same folder")
        return self

    def search(self, model: str) -> SearchSettings:
        """How a model is tuned."""
        space = self.space.get(model, {})
        return SearchSettings(trials=self.trials, search_seed=self.search_seed, space=space)

    def only(self, name: str) -> Campaign:
        """The stage of that name, and those that it depends on; raises UsageError."""
        by_name = {stage.name: stage for stage in self.stage}
        if name not in by_name:
            raise unknown("stage", name, by_name)
        kept = {name}
        while (needed := by_name[name].winner_of) is not None:
            kept.add(needed)
            name = needed
        stages = tuple(stage for stage in self.stage if stage.name in kept)
        return self.model_copy(update={"stage": stages})


def read_campaign(path: Path) -> Campaign:
    """The campaign in a TOML file; raises UsageError if it is invalid."""
    content = read_toml(path)
    if "grid" in content and "stage" not in content:
        raise UsageError(f"{path} is a sweep file: `iclbench sweep {shell_path(path)}` runs it")
    campaign = parse_config(Campaign, content, str(path))
    # Relative to the file, as its author sees it.
    stages = tuple(_beside(path.parent, stage) for stage in campaign.stage)
    published = campaign.published and path.parent / campaign.published
    if published is not None and not published.is_dir():
        raise UsageError(f"{path}: published: {published} is no folder")
    return campaign.model_copy(update={"stage": stages, "published": published})


def _beside(folder: Path, stage: CampaignStage) -> CampaignStage:
    """The stage with the paths of its files in the campaign's folder."""
    sweeps = tuple(entry.model_copy(update={"file": folder / entry.file}) for entry in stage.sweep)
    is_file = stage.suite is not None and stage.suite.endswith(".toml")
    suite = str(folder / str(stage.suite)) if is_file else stage.suite
    return stage.model_copy(update={"sweep": sweeps, "suite": suite})
