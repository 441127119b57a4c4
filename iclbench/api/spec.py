"""RunSpec: what to run, and its identity."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from .config import Config, added_later

_PLAIN = re.compile(r"[\w./:+@-]+", re.ASCII)

#: More seeds than this are a seed mistaken for a number of seeds.
MOST_SEEDS = 10_000

Origin = Literal["trained", "constructed", "solver", "loaded"]


class RunSpec(Config):
    """One run as it is asked for: a model, its weights, a task, a recipe, a dtype, seeds."""

    model: str
    task: str
    model_args: dict[str, Any] = {}
    task_args: dict[str, Any] = {}
    weights: str | None = Field(
        None, description="trained, a construction's name, or a checkpoint; None: as it must be"
    )
    weights_args: dict[str, Any] = {}
    init: str | None = Field(None, description="a construction or checkpoint to train from")
    freeze: tuple[str, ...] = Field((), description="patterns of parameters that stay as they are")
    perturb: float = Field(0.0, ge=0, description="noise added to the initial parameters")
    recipe: str = "quick"
    recipe_args: dict[str, Any] = {}
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    dtype: Literal["float32", "float64"] = "float32"
    eval_prompts: int = Field(2048, ge=2)
    eval_seed: int = Field(0, ge=0)
    metrics: tuple[str, ...] = ()
    grader: str | None = added_later(None, description="what grades the endings a model writes")
    grader_args: dict[str, Any] = added_later({})
    grader_budget: float | None = added_later(
        None, gt=0, description="USD that grading may cost at most; no part of a run's id"
    )

    @field_validator("seeds", mode="before")
    @classmethod
    def _count_or_list(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if value < 1:
                raise ValueError("at least one seed")
            if value > MOST_SEEDS:
                raise ValueError(f"{value} seeds are too many; one seed is written as [{value}]")
            return tuple(range(value))
        return value

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or len(set(value)) != len(value) or min(value) < 0:
            raise ValueError("seeds must be distinct, not negative, and at least one")
        return value

    def command(self) -> str:
        """The shortest `iclbench run` command that asks for this."""
        words = ["iclbench", "run", "--model", self.model, "--task", self.task]
        for name in type(self).model_fields:
            value, default = getattr(self, name), RunSpec.model_fields[name].default
            if name in {"model", "task"} or value == default:
                continue
            words += _flag(name, value)
        return shlex.join(words)


class ResolvedSpec(RunSpec):
    """A spec with every default filled in; the hash of its content is the run's id.

    Recipe and seeds are empty where nothing is trained, so that one solver has one record.
    """

    task_version: int
    origin: Origin
    checkpoint_digest: str | None = Field(None, description="SHA-256 of the weights or init file")
    data_digest: str | None = added_later(None, description="SHA-256 of the data a task reads")
    recipe: str = ""
    seeds: tuple[int, ...] = ()

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        return value

    @property
    def id(self) -> str:
        """16 hexadecimal digits; see `spec_id`."""
        return spec_id(self.model_dump(mode="json"))

    def train_key(self, task_args: Iterable[str] = (), model_args: Iterable[str] = ()) -> str:
        """Runs with one key can be trained by one program.

        They differ in seeds and learning rate, and in those arguments of the task and the model
        that are named, alone.
        """
        content = self.model_dump(mode="json", exclude={"seeds"})
        carried = {
            "recipe_args": {"learning_rate"},
            "task_args": {*task_args},
            "model_args": {*model_args},
        }
        for field, names in carried.items():
            content[field] = {k: v for k, v in content[field].items() if k not in names}
        return digest_of(content)[:16]


def spec_id(content: Mapping[str, Any]) -> str:
    """The id of a resolved spec as JSON; a checkpoint counts by its content, not by its path."""
    paths = ("weights", "init") if content["checkpoint_digest"] else ()
    return digest_of({k: v for k, v in content.items() if k not in paths})[:16]


def canonical_json(content: Any) -> str:
    """JSON with sorted keys and no spaces; the same content gives the same text."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(content: Any) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _flag(name: str, value: Any) -> list[str]:
    option = "--" + name.replace("_", "-")
    if isinstance(value, dict):
        return [option, ",".join(f"{k}={_argument(v)}" for k, v in value.items())]
    if name == "seeds":
        counted = value == tuple(range(len(value)))
        return [option, str(len(value)) if counted else ",".join(map(str, value)) + ","]
    if name == "freeze":
        return [word for pattern in value for word in (option, pattern)]
    if isinstance(value, tuple):
        return [option, ",".join(value)]
    return [option, str(value)]


def _argument(value: Any) -> str:
    # Text that would read back as a number, or that needs care, is quoted.
    plain = isinstance(value, str) and _PLAIN.fullmatch(value) and _value(value) == value
    return str(value) if plain else json.dumps(value)
