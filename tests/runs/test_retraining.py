"""Training again: it refuses forgeries of the past, and proves sound records.

Each forgery is consistent in all that `verify` can compute, which shows the rest as claimed.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from forging import (
    Content,
    Forgery,
    as_solver,
    edit,
    edit_training,
    find,
    problem_of,
    reseal,
    states_of,
    values_of,
    with_answers_of,
    with_values,
    with_weights,
)

import iclbench
from iclbench import RecordError, verify
from iclbench.api.spec import RunSpec
from iclbench.runs.code import other_code
from iclbench.runs.facts import claims
from iclbench.runs.models import given_models
from iclbench.runs.objects import Objects
from iclbench.runs.plan import resolve
from iclbench.runs.proofs import write_proof
from iclbench.runs.retraining import (
    _checkpoint,
    _compare_roughly,
    _compare_seconds,
    retrain,
)
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.store import RecordStore, read_record, read_values
from iclbench.training.platforms import with_moves


def as_loaded(content: Content) -> None:
    """Consistent in all that can be computed: the checkpoint is only claimed."""
    weights, command = content["weights"], content["command"]
    as_solver(content)
    digest = weights["sha256"]
    content["weights"] = weights
    content["plugins"] = [p for p in content["plugins"] if p["name"] != "builtins"]
    content["operations"].update(gradient=None, training=None)
    content.update(budget=None, track=None, validation_curve=None)
    content["spec"].update(origin="loaded", weights="mine.safetensors", checkpoint_digest=digest)
    kept = [command.partition(" --recipe")[0], "--weights mine.safetensors --eval-prompts 64"]
    content["command"] = " ".join(kept)


def as_fast(content: Content) -> None:
    """All times of a training of 20 steps of two models, which don't contradict each other."""
    content["training"].update(seconds=1e-4, steps_per_second=4e5)
    content["budget"].update(core_seconds=5e-5, wall_seconds=5e-5)
    curve = content["validation_curve"]
    curve["seconds"] = [0.0 for _ in curve["seconds"]]


def as_trained_from_a_file(content: Content) -> None:
    content["spec"].update(init="mine.safetensors", checkpoint_digest="0" * 64)
    content["command"] = content["command"].replace(
        "--recipe", "--init mine.safetensors --recipe", 1
    )


def more_steps_as_fewer(folder: Path) -> Path:
    long = find(folder, steps=60)
    path = with_values(find(folder), values_of(long))
    return with_weights(with_answers_of(path, long), states_of(long))


def constructed_as_trained(folder: Path) -> Path:
    built = find(folder, origin="constructed", seeds=0, steps=None)
    record = read_record(built)
    (model,) = given_models(resolve(RunSpec.from_command(record.command)))
    state = {n: p.detach().float() for n, p in model.module.named_parameters()}
    state |= {n: b.float() for n, b in model.module.named_buffers()}
    path = with_values(find(folder, seeds=1), values_of(built))
    return with_weights(with_answers_of(path, built), {0: state})


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
    "seconds of training": (edit(as_fast), "seconds of training"),
    "a divergence": (edit(lambda c: c["seeds"][0].update(diverged_at=3)), "diverged"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMED)
def test_a_forgery_of_the_past_is_claimed_and_training_again_refuses_it(records, name):
    forgery, claim = CLAIMED[name]
    path = forgery(records)
    assert problem_of(path, verify) is None
    assert claim in claims(read_record(path), Objects.beside(path))
    assert problem_of(path, lambda path: retrain(path).checks)


def test_a_sound_record_is_proved_and_its_claims_give_way(records):
    """A date of the past can't be refuted; after training again it is that of the proof."""
    path = edit(lambda c: c.update(created="2026-11-02T00:00:00+00:00"))(records)
    outcome = retrain(path)
    assert all(check.holds for check in outcome.checks)
    write_proof(path, outcome.record, read_record(path))
    proved = read_record(path)
    assert proved.proof.kind == "retrained"
    assert proved.proof.same_bits
    assert proved.created == proved.proof.created
    assert all(check.holds for check in verify(path))
    assert "proof" in claims(proved, Objects.beside(path))


def test_what_an_old_record_lacked_is_there_once_it_is_proved(records):
    """Records before budgets and validation curves say why they lack them."""
    lacking = dict.fromkeys(["budget", "validation_curve"], "not measured then")
    path = edit(lambda c: c.update(**dict.fromkeys(lacking), missing=lacking))(records)
    assert problem_of(path, verify) is None
    outcome = retrain(path)
    assert outcome.record.proof.same_bits
    write_proof(path, outcome.record, read_record(path))
    assert read_record(path).missing == {}
    assert read_record(path).budget is not None
    assert problem_of(path, verify) is None


@pytest.mark.parametrize("plugin", [0, 1], ids=["harness", "plugin"])
def test_a_claim_of_other_code_gives_way_where_the_bits_are_the_same(records, plugin):
    path = edit(lambda c: c["plugins"][plugin].update(version="9.9", source="0" * 64))(records)
    assert other_code(read_record(path))
    outcome = retrain(path)
    assert all(check.holds for check in outcome.checks)
    assert outcome.record.proof.same_bits
    assert not other_code(outcome.record)


def with_other_rounding(path: Path) -> Path:
    rounded = {
        seed: {name: value * (1 + 1e-6) for name, value in state.items()}
        for seed, state in states_of(path).items()
    }
    return with_weights(path, rounded)


def test_other_bits_by_the_same_code_on_the_same_platform_are_refused(records):
    outcome = retrain(with_other_rounding(find(records)))
    assert outcome.record is None
    assert outcome.outcome == ""
    assert "weights, trained again" in {check.name for check in outcome.checks if not check.holds}


def test_other_code_may_round_differently_and_its_claim_stays(records):
    path = edit(lambda c: c["plugins"][1].update(source="0" * 64))(records)
    outcome = retrain(with_other_rounding(path))
    assert all(check.holds for check in outcome.checks)
    assert not outcome.record.proof.same_bits
    (name,) = other_code(outcome.record)
    assert outcome.outcome.startswith(f"trained again by other code ({name}): ")


def test_a_sound_record_from_elsewhere_is_proved_within_the_tolerance(records):
    """Other rounding gives other bits; what the author claims of the past then stays claimed."""
    path = elsewhere(find)(records)
    outcome = retrain(with_other_rounding(path))
    assert all(check.holds for check in outcome.checks)
    assert not outcome.record.proof.same_bits
    assert outcome.record.proof.tolerance in outcome.outcome
    assert outcome.record.environment.processor == "arm64 NEON"
    assert "with other rounding (not the same processor); first losses" in outcome.outcome


def test_a_cell_of_a_larger_group_is_proved_within_the_tolerance(records):
    """A sweep trains several cells as one program, which rounds differently."""
    path = edit_training(replicas=12)(records)
    outcome = retrain(with_other_rounding(path))
    assert "with other rounding (not the same number of replicas); " in outcome.outcome


def test_a_run_that_diverged_beside_one_that_did_not_is_proved(tmp_path):
    """Its curve goes on to the end of the other."""
    rates = {"optimizer": "sgd", "steps": 20, "chunk": 3}
    args = {"model": "lsa", "task": "least-squares", "recipe": "smoke", "seeds": (0, 1)}
    plans = [
        resolve(RunSpec(**args, recipe_args=rates | {"learning_rate": rate}, eval_prompts=32))
        for rate in (1e-3, 1e6)
    ]
    _lived, record = run_plans(plans, Settings(tmp_path, device="cpu"))
    assert None not in [seed.diverged_at for seed in record.seeds]
    assert record.training.steps == 20
    outcome = retrain(RecordStore(tmp_path).path(record.spec))
    assert [check.difference for check in outcome.checks if not check.holds] == []
    assert outcome.record is not None


def test_a_training_that_went_on_elsewhere_is_proved_within_the_tolerance(records):
    path = edit_training(note=with_moves(None, ["threads"]))(records)
    outcome = iclbench.retrain(str(with_other_rounding(path)), device="cpu")
    assert "with other rounding (not the same platform from start to end); " in outcome.outcome


def test_training_again_starts_from_no_other_file_of_the_same_name(tmp_path):
    file = tmp_path / "mine.safetensors"
    file.write_bytes(b"changed since")
    spec = SimpleNamespace(init=str(file), checkpoint_digest="0" * 64)
    with pytest.raises(RecordError, match="is not here"):
        _checkpoint(tmp_path / "task" / "record.json", spec)


@pytest.mark.parametrize(
    ("steps", "loss", "failing"),
    [(4, 1.0, set()), (5, 1.0, {"training steps, again"}), (4, 1.05, {"first loss, again"})],
)
def test_other_steps_and_another_first_loss_are_noticed(records, steps, loss, failing):
    path = find(records)
    record = read_record(path)
    before = record.training.model_copy(update={"steps": 4, "curve": [[1.0], [1.0], [1.0]]})
    now = before.model_copy(update={"steps": steps, "curve": [[loss], [1.0], [1.0]]})
    plan = resolve(RunSpec.from_command(record.command))
    measured = SimpleNamespace(values=read_values(path, record.main.values))
    changed = record.model_copy(update={"training": before})
    checks = _compare_roughly(path, changed, now, measured, plan)
    assert {check.name for check in checks if not check.holds} == failing


@pytest.mark.parametrize(("claimed", "holds"), [(1.0, False), (10.0, True), (1000.0, True)])
def test_a_training_is_not_claimed_to_be_far_faster(records, claimed, holds):
    report = read_record(find(records)).training
    before, now = (report.model_copy(update={"seconds": s}) for s in (claimed, 100.0))
    assert _compare_seconds(before, now).holds is holds
