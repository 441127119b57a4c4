"""Options of a spec: every field of RunSpec has one, and the fields are listed nowhere else."""

from __future__ import annotations

import inspect
import shlex
from typing import Annotated, get_args

import pytest
import typer
from pydantic import Field

import iclbench
from iclbench import RunSpec
from iclbench.api import spec as spec_module
from iclbench.api.options import Option, Patterns
from iclbench.api.spec import flag, spec_options
from iclbench.cli import common as cli_common
from iclbench.cli import spec_options as cli_options
from iclbench.cli.run import run
from iclbench.training.gradients import choice

#: A value other than the default for every field.
OTHER = {
    "model": "m",
    "task": "t",
    "model_args": {"a": 1, "text": "1"},
    "task_args": {"b": [1, 2]},
    "weights": "here.safetensors",
    "weights_args": {"c": True},
    "init": "there",
    "freeze": ("blocks.*", "read,out"),
    "perturb": 0.5,
    "recipe": "smoke",
    "recipe_args": {"steps": 3},
    "budget": "10m",
    "seeds": (7,),
    "dtype": "float64",
    "eval_prompts": 3,
    "eval_seed": 4,
    "shift": ("x", "y"),
    "metrics": ("x", "y"),
    "grader": "g",
    "grader_args": {"d": None},
    "grader_budget": 1.5,
}


def options_in(words: list[str]) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    for option, text in zip(words[::2], words[1::2], strict=True):
        given.setdefault(option, []).append(text)
    return given


def test_a_command_gives_every_field():
    request = RunSpec(**OTHER)
    given = options_in(shlex.split(request.command())[2:])
    assert set(given) == {flag(name) for name in RunSpec.model_fields}
    read = {name: option.read(given[flag(name)], "") for name, option in spec_options().items()}
    assert RunSpec(**read) == request


def test_the_verb_has_an_option_for_every_field(cli):
    shown = cli("run", "--help").out
    for name, option in spec_options().items():
        assert f"{flag(name)} {option.metavar}" in shown or name in {"model", "task"}
        assert set(RunSpec.model_fields) <= set(inspect.signature(run).parameters)


@pytest.fixture
def wider(monkeypatch) -> type[RunSpec]:
    """RunSpec with two more fields."""

    class Wider(RunSpec):
        pace: Annotated[float, Option("SPEED")] = Field(1.0, description="how fast")
        skip: Annotated[tuple[str, ...], Patterns("NAME")] = Field((), description="what to omit")

    for module in (spec_module, cli_options):
        monkeypatch.setattr(module, "RunSpec", Wider)
    return Wider


def test_a_new_field_has_an_option_and_is_in_the_command(wider, capsys):
    received = []

    @cli_options.with_spec_options
    def verb(spec: dict[str, object]) -> None:
        received.append(wider(**spec))

    app = typer.Typer(rich_markup_mode=None)
    app.command()(verb)
    words = ["--model", "m", "--task", "t", "--pace", "2.5", "--skip", "a", "--skip", "b"]
    app(words, standalone_mode=False)
    assert (received[0].pace, received[0].skip) == (2.5, ("a", "b"))
    assert shlex.split(received[0].command())[2:] == words
    with pytest.raises(SystemExit):
        app(["--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    assert "--pace SPEED How fast. [default: 1.0]" in help_text
    assert "--skip NAME What to omit; repeatable." in help_text


def test_values_are_validated_by_the_spec(cli, tmp_path):
    args = ("run", "--model", "zero", "--task", "least-squares", "--out", tmp_path)
    refused = cli(*args, "--eval-prompts", "many")
    assert refused.code == 2
    assert "--eval-prompts: input should be a valid integer" in refused.err
    assert refused.err.count("\n") == 1


def test_the_verb_s_defaults_are_those_of_the_spec():
    parameters = inspect.signature(run).parameters
    names = OTHER.keys() & parameters.keys() - {"model", "task"}
    assert names
    for name in names:
        option, field = spec_options()[name], RunSpec.model_fields[name]
        texts = option.write(field.default)
        expected = texts or None if option.repeatable else next(iter(texts), None)
        assert parameters[name].default == expected, name


def test_the_defaults_of_run_are_those_of_a_request():
    """They are spelled out in its signature, for editors and the reference."""
    parameters = inspect.signature(iclbench.run).parameters
    spelled = {name: parameters[name].default for name in RunSpec.model_fields}
    given = {
        n: value for n, value in spelled.items() if value not in {None, parameters["task"].default}
    }
    assert RunSpec(model="m", task="t", **given) == RunSpec(model="m", task="t")


def test_both_lists_of_engines_agree():
    """The command line has its own, since it must not import torch."""
    assert get_args(cli_common.EngineName) == get_args(choice.EngineName)
