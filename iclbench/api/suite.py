"""Suite: a named, versioned list of boards that every model runs alike."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationError, model_validator

from .config import Config, parse_config
from .errors import UsageError, unknown
from .names import MOST_NAME, content_problem, is_entry_name, visible
from .spec import RunSpec

#: Fields of a run that belong to the model: a suite doesn't set them.
OF_MODEL = frozenset(
    {"model", "model_args", "weights", "weights_args", "init", "freeze", "perturb"}
)
#: Fields of a run that define the prompts of a board: whoever runs a suite can't change them.
OF_BOARD = frozenset({"task", "task_args", "dtype", "eval_prompts", "eval_seed"})

#: The most characters of a suite's summary.
MOST_SUMMARY = 500


class SuiteBoard(Config):
    """One board: the fields of a run that are the same for every model."""

    name: str = Field(description="lower-case words joined by hyphens")
    chance: str = Field(description="solver whose score counts as 0")
    reference: str | None = Field(
        None,
        description="solver whose score counts as 1 where the task has no floor; null: the best "
        "row of the board",
    )
    fields: dict[str, Any] = Field(description="fields of a run, except those of the model")

    def request(self, model: str, **changes: Any) -> RunSpec:
        """The run of a model on this board; raises UsageError for changes that are invalid."""
        return parse_config(
            RunSpec, {**self.fields, **changes, "model": model}, f"board {self.name}"
        )


class Suite(Config):
    """A named, versioned list of boards, as a TOML file holds it.

    A board may set every field of a run except those of the model. A change of a board needs a new
    `version`.
    """

    name: str = Field(description="lower-case words joined by hyphens")
    version: int = Field(ge=1)
    summary: str = Field(description="one line")
    defaults: dict[str, Any] = Field({}, description="fields of every board, each replaced whole")
    board: tuple[dict[str, Any], ...] = Field(
        min_length=1, description="name, chance, reference, and fields of a run, per board"
    )

    @model_validator(mode="after")
    def _boards_are_valid(self) -> Suite:
        # First of all: the messages below show texts of the file, and so do terminals and pages.
        problem = content_problem(dict(self))
        if problem is not None:
            raise ValueError(problem)
        if len(self.summary) > MOST_SUMMARY:
            raise ValueError(
                f"summary: a text of {len(self.summary):,} characters; at most {MOST_SUMMARY} are "
                "allowed"
            )
        names = [self.name, *(board.name for board in self.boards)]
        for name in names:
            if len(name) > MOST_NAME:
                raise ValueError(
                    f"a name of {len(name):,} characters; at most {MOST_NAME} are allowed"
                )
            if not is_entry_name(name):
                raise ValueError(f"{name!r} is not a name: use lower-case words joined by hyphens")
        for name in names[1:]:
            if names[1:].count(name) > 1:
                raise ValueError(f"two boards have the name {name!r}")
        return self

    @property
    def boards(self) -> tuple[SuiteBoard, ...]:
        """The boards with the defaults filled in."""
        return tuple(self._parsed(content) for content in self.board)

    def _parsed(self, content: dict[str, Any]) -> SuiteBoard:
        merged = {**self.defaults, **content}
        about = {key: merged.pop(key) for key in ("name", "chance", "reference") if key in merged}
        label = f"board {visible(str(about.get('name', '?')), MOST_NAME)}"
        for key in merged:
            known = [name for name in RunSpec.model_fields if name not in OF_MODEL]
            if key not in known:
                raise ValueError(f"{label}: {unknown('field', key, known)}")
        try:
            board = SuiteBoard.model_validate({**about, "fields": merged})
            board.request("any")
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{label}: {first['loc'][0]}: {first['msg']}") from None
        except UsageError as error:
            raise ValueError(str(error)) from None
        return board
