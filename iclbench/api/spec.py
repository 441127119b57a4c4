"""RunSpec: a run as it is requested. ResolvedSpec: the same with every default, and its id."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from .budget import Budget
from .config import Config, added_later, parse_config
from .errors import UsageError
from .names import content_problem
from .options import Arguments, Names, Option, Patterns, Seeds

#: Someone who asks for more seeds than this has given a seed instead of a number of seeds.
MOST_SEEDS = 10_000

Origin = Literal["trained", "constructed", "solver", "loaded", "asked"]

#: What running a model of each origin does.
ACTIONS: dict[Origin, str] = {
    "trained": "train",
    "constructed": "build",
    "solver": "solve",
    "loaded": "load",
    "asked": "ask",
}


class RunSpec(Config):
    """The request for one run: a model, its weights, a task, a recipe, a dtype, seeds.

    The options of `iclbench run`, the command that reproduces a record, the keys of a sweep file
    and the request that `verify` makes are derived from these fields.
    """

    model: Annotated[str, Option("NAME")] = Field(description="model to run")
    task: Annotated[str, Option("NAME")] = Field(description="task to run it on")
    model_args: Annotated[dict[str, Any], Arguments()] = Field(
        {}, description="arguments of the model"
    )
    task_args: Annotated[dict[str, Any], Arguments()] = Field(
        {}, description="arguments of the task"
    )
    weights: Annotated[str | None, Option("trained|CONSTRUCTION|PATH")] = Field(
        None,
        min_length=1,
        description="source of the weights; by default, a solver or a language model runs as it "
        "is, and any other model is trained",
    )
    weights_args: Annotated[dict[str, Any], Arguments()] = Field(
        {}, description="arguments of the construction of --weights or --init"
    )
    init: Annotated[str | None, Option("CONSTRUCTION|PATH", training=True)] = Field(
        None,
        min_length=1,
        description="weights to start training from; by default, they are random",
    )
    freeze: Annotated[tuple[str, ...], Patterns("PATTERN", training=True)] = Field(
        (), description="parameters to keep fixed, as a pattern of their names; needs --init"
    )
    perturb: Annotated[float, Option("SIGMA", training=True)] = Field(
        0.0, ge=0, description="standard deviation of the noise added to --init"
    )
    recipe: Annotated[str, Option("NAME", training=True)] = Field(
        "quick", description="recipe of the training"
    )
    recipe_args: Annotated[dict[str, Any], Arguments(training=True)] = Field(
        {}, description="arguments of the recipe"
    )
    budget: Annotated[str | None, Option("DURATION", training=True)] = added_later(
        None,
        description="training time per seed, instead of a number of steps: core time (10m, 2h) or "
        "GPU time (gpu-1h)",
    )
    seeds: Annotated[tuple[int, ...], Seeds("N|A,B", training=True)] = Field(
        (0, 1, 2, 3, 4), description="number of seeds (5), or a list of seeds (3,7 or [7])"
    )
    dtype: Annotated[Literal["float32", "float64"], Option("float32|float64")] = Field(
        "float32", description="precision of all arithmetic"
    )
    eval_prompts: Annotated[int, Option("N")] = Field(
        2048, ge=2, description="number of evaluation prompts"
    )
    eval_seed: Annotated[int, Option("SEED")] = Field(
        0, ge=0, description="seed of the evaluation prompts"
    )
    shift: Annotated[tuple[str, ...], Names("all|NAME[,NAME]")] = added_later(
        (), description="shifts under which to evaluate as well; not part of the run's id"
    )
    metrics: Annotated[tuple[str, ...], Names("NAME[,NAME]")] = Field(
        (), description="additional metrics, besides those of the task"
    )
    grader: Annotated[str | None, Option("NAME")] = added_later(
        None, description="grader of the texts that a model writes"
    )
    grader_args: Annotated[dict[str, Any], Arguments()] = added_later(
        {}, description="arguments of the grader"
    )
    grader_budget: Annotated[float | None, Option("USD")] = added_later(
        None, gt=0, description="maximum cost of grading, in USD; not part of the run's id"
    )

    @field_validator("budget")
    @classmethod
    def _normal_form(cls, value: str | None) -> str | None:
        return None if value is None else str(Budget.parse(value))

    @field_validator("metrics")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        twice = [name for name, count in Counter(value).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]} is named twice")
        return value

    @field_validator("seeds", mode="before")
    @classmethod
    def _count_or_list(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if value < 1:
                raise ValueError("at least one seed")
            if value > MOST_SEEDS:
                raise ValueError(f"{value} seeds are too many; write one seed as [{value}]")
            return tuple(range(value))
        if not isinstance(value, list | tuple | range):
            raise ValueError("a number of seeds or a list of them is needed")
        return value

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or len(set(value)) != len(value) or min(value) < 0:
            raise ValueError("seeds must be distinct, not negative, and at least one")
        return value

    @model_validator(mode="after")
    def _fits_a_record(self) -> RunSpec:
        """Refuse now what the run's record could not hold, not after a training."""
        problem = content_problem(dict(self))
        if problem is not None:
            raise ValueError(problem)
        return self

    def command(self) -> str:
        """The shortest `iclbench run` command that makes this request."""
        words = ["iclbench", "run"]
        for name, option in spec_options().items():
            value, field = getattr(self, name), RunSpec.model_fields[name]
            if field.is_required() or value != field.default:
                for text in option.write(value):
                    words += [flag(name), text]
        return shlex.join(words)

    @classmethod
    def from_command(cls, text: str) -> RunSpec:
        """The request whose `command` is this text; raises UsageError for any other text.

        No file is read: a command that `command` wrote holds all arguments itself.
        """
        options = spec_options()
        fields = {flag(name): name for name in options}
        try:
            words = shlex.split(text)
        except ValueError:
            words = []
        if words[:2] != ["iclbench", "run"] or len(words) % 2:
            raise UsageError("the command is not an `iclbench run` command")
        texts: dict[str, list[str]] = {}
        for word, value in zip(words[2::2], words[3::2], strict=True):
            if word not in fields:
                raise UsageError(f"the command has an unknown option {word!r}")
            if isinstance(options[fields[word]], Arguments) and value.startswith("@"):
                raise UsageError(f"the command reads its {word} from a file")
            texts.setdefault(fields[word], []).append(value)
        values = {name: options[name].read(given, flag(name)) for name, given in texts.items()}
        request = parse_config(cls, values, "the command")
        if request.command() != text:
            raise UsageError("the command is not written as iclbench writes it")
        return request


def spec_options() -> dict[str, Option]:
    """The option of every field of RunSpec, in order."""
    options = {}
    for name, field in RunSpec.model_fields.items():
        (options[name],) = (item for item in field.metadata if isinstance(item, Option))
    return options


def flag(name: str) -> str:
    """The option's name on the command line."""
    return "--" + name.replace("_", "-")


class ResolvedSpec(RunSpec):
    """A spec with every default filled in. The hash of its content is the run's id.

    Recipe and seeds are empty where nothing is trained, so that each solver has a single record.
    """

    task_version: int
    origin: Origin
    checkpoint_digest: str | None = Field(None, description="SHA-256 of the weights or init file")
    data_digest: str | None = added_later(
        None, description="SHA-256 of the data that the task reads"
    )
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
        """16 hexadecimal digits; one program can train all runs that share this key.

        Such runs differ only in seeds, in the learning rate, and in the named arguments of the
        task and of the model.
        """
        content = _without_paths(self.model_dump(mode="json", exclude={"seeds"}))
        may_differ = {
            "recipe_args": {"learning_rate"},
            "task_args": {*task_args},
            "model_args": {*model_args},
        }
        for field, names in may_differ.items():
            content[field] = {k: v for k, v in content[field].items() if k not in names}
        return digest_of(content)[:16]


def spec_id(content: Mapping[str, Any]) -> str:
    """The id of a resolved spec as JSON. A checkpoint counts by its content, not by its path."""
    return digest_of(_without_paths(content))[:16]


def _without_paths(content: Mapping[str, Any]) -> dict[str, Any]:
    paths = ("weights", "init") if content.get("checkpoint_digest") else ()
    return {k: v for k, v in content.items() if k not in paths}


def canonical_json(content: Any) -> str:
    """JSON with sorted keys and no spaces, so that equal content gives equal text."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(content: Any) -> str:
    """SHA-256 of the canonical JSON, as hexadecimal digits."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()
