"""The facts of a record that follow from its request, and those that can only be claimed.

The request is read from the record's command and resolved again, so nothing that the record says
of itself is taken for granted. Facts about the past can't be computed: `claims` lists them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..api.errors import UsageError
from ..api.names import visible
from ..api.recipe import Recipe
from ..api.record import MAIN, Record, TrainingReport
from ..api.results import Evaluation
from ..api.spec import RunSpec
from ..console import counted
from ..training.checkpoints import Weights, load_weights
from ..training.curve import POINTS
from .code import stale_code
from .comparison import Check, of_the_past, same
from .cost_facts import LEAST_SECONDS, compare_costs, cost_claims, fitted_recipe
from .grading_facts import has_paid_grades
from .objects import Objects
from .origins import source_of
from .plan import Plan, resolve
from .recorded_answers import read_answers
from .report import evaluation_set, is_chance, plugin_references, ranking
from .shifts import asked_shifts, present_shifts, shifted_plan
from .tuned import compare_tuning, trials_in_words
from .weights_facts import (
    built_model,
    built_models,
    copied_seeds,
    is_construction,
    moved_parameters,
    replaced_tensors,
    trained_models,
    unlike_saved,
)

#: An evaluation takes at least as long as so many steps of a training may.
EVALUATION_STEPS = 100
#: What trainings before the schema's last change did not measure, and their records say so.
MAY_LACK = {"budget", "validation_curve"}
#: Fields that no run of this version fills in.
UNUSED = ("experimental",)
#: Fields of a spec that a checkpoint decides, which is not there when a record is verified.
BY_CHECKPOINT = ("init", "weights", "freeze", "perturb")

#: The claim that names the plugins whose code has changed since.
OTHER_CODE = "made by other code of"


@dataclass(frozen=True)
class Recomputed:
    """A record's plan, computed again, with the models' weights where the record holds them."""

    plan: Plan
    weights: Weights | None

    @property
    def evaluation_plan(self) -> Plan:
        """The plan that evaluates the recorded weights and trains nothing."""
        if self.weights is None:
            return self.plan
        spec = self.plan.spec.model_copy(
            update={"origin": "loaded", "weights": "what the record holds"}
        )
        return replace(self.plan, spec=spec, states=self.weights.states, partial=False, recipe=None)


def recompute(path: Path, record: Record) -> Recomputed:
    """Resolve the command of the record in `path` again, in place of what the record claims.

    Raises UsageError for a command or weights that can't be used.
    """
    request, objects, weights = RunSpec.from_command(record.command), Objects.beside(path), None
    if record.weights_file is not None:
        file = objects.sound_path(record.weights_file)
        weights = load_weights(file)
        if weights.model not in {None, record.spec.model}:
            raise UsageError(f"its weights are those of {weights.model!r}")
    changes: dict[str, Any] = {}
    if _is_of_a_file(record, request):
        args = {**record.spec.model_args, **request.model_args}
        changes["model_args"] = args
        if record.spec.origin == "loaded" and record.weights_file is not None:
            changes["weights"] = str(objects.path(record.weights_file))
        else:
            changes |= {"init": None, "freeze": (), "perturb": 0.0}
        request = request.model_copy(update=changes)
    _require_no_file(request, changes.get("weights"))
    answered = read_answers(record, objects)
    # A record without answers has none to any question: for a record nothing is ever asked.
    return Recomputed(replace(resolve(request), answers=answered.answers), weights)


def _is_of_a_file(record: Record, request: RunSpec) -> bool:
    """Whether the models are or began as those of a file, of which the record has the digest."""
    return record.spec.checkpoint_digest is not None and not is_construction(request)


def _require_no_file(request: RunSpec, held: str | None) -> None:
    """Raise UsageError for a request that takes weights from another file than the record's."""
    source = source_of(request)
    if source not in {None, held} and not is_construction(request):
        raise UsageError(f"its command reads weights from {source!r}, which it does not hold")


def compare_facts(record: Record, now: Recomputed) -> Iterator[Check]:
    """A check for every fact that follows without measuring anything."""
    yield from compare_spec(record, now.plan)
    yield same("ranking", record.ranking, ranking(now.plan))
    yield same("chance", record.chance, is_chance(now.plan))
    expected = {p.name: p.distribution for p in plugin_references(now.plan.plugins)}
    named = [(p.name, p.distribution) for p in record.plugins]
    yield same("plugins", sorted(named), sorted(expected.items()))
    for name in UNUSED:
        yield same(name, getattr(record, name), Record.model_fields[name].default)
    may_lack = MAY_LACK - ({"budget"} if record.spec.budget else set())
    absent = [name for name in may_lack & record.missing.keys() if getattr(record, name) is None]
    yield same("missing", sorted(record.missing), sorted(absent))
    shifts = asked_shifts(now.plan)
    yield same("shifts", sorted(present_shifts(record)), sorted(shifts))
    for name, evaluation in record.evaluations.items():
        if name == MAIN:
            yield from _evaluation("evaluation", evaluation, now.plan)
        elif name in shifts:
            yield from _evaluation(f"shift {name}", evaluation, shifted_plan(now.plan, name))
    yield from _models(record, now)
    yield same("training", record.training is not None, record.spec.origin == "trained")
    yield same("answers", record.answers is not None, now.plan.spec.origin == "asked")
    if record.training is not None and now.plan.recipe is not None:
        yield from _training(record, record.training, fitted_recipe(record, now.plan.recipe))
    yield from compare_costs(record, now.plan)
    yield from compare_tuning(record, now.plan)
    graders = [record.spec.grader, record.grader.name if record.grader else None]
    yield same("grader", graders[1], graders[0])
    yield of_the_past("created", record.created)
    if record.proof is not None:
        yield of_the_past("proof created", record.proof.created)


def compare_spec(record: Record, plan: Plan) -> Iterator[Check]:
    """Every field of the spec against what the command resolves to."""
    request = RunSpec.from_command(record.command)
    by_checkpoint = _is_of_a_file(record, request) and (
        record.spec.origin == "loaded" or request.init is not None
    )
    recorded, computed = (spec.model_dump(mode="json") for spec in (record.spec, plan.spec))
    if by_checkpoint:
        asked = {name: _json(getattr(request, name)) for name in BY_CHECKPOINT}
        computed |= {**asked, "checkpoint_digest": record.spec.checkpoint_digest}
    for name in {**computed, **recorded}:
        yield same(f"spec {name}", recorded.get(name), computed.get(name))


def _json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _evaluation(what: str, evaluation: Evaluation, plan: Plan) -> Iterator[Check]:
    """The prompts of one evaluation, of which `plan` has the task and the number."""
    # The values are there, so that a number of prompts without them costs no memory.
    shapes = [ref.shape for ref in evaluation.values.values()]
    rows = max((shape[1] for shape in shapes if shape and len(shape) > 1), default=0)
    prompts = plan.spec.eval_prompts
    most = prompts * len(plan.task.cases)
    are_theirs = Check(f"{what} prompts", rows, prompts, prompts <= rows <= most)
    yield are_theirs
    if are_theirs.holds:
        digest = plan.task.evaluation_digest(prompts, plan.spec.eval_seed)
        for name, value in evaluation_set(plan, digest).items():
            yield same(f"{what} {name}", getattr(evaluation, name), value)
    yield same(f"{what} floor name", evaluation.floor.name, plan.task.floor_name)
    yield _at_least(f"{what} seconds", evaluation.seconds, EVALUATION_STEPS * LEAST_SECONDS)


def _models(record: Record, now: Recomputed) -> Iterator[Check]:
    """The seeds against the spec and the weights, and the weights of each against the others'."""
    origin, seeds = record.spec.origin, [seed.seed for seed in record.seeds]
    yield same("weights", now.weights is not None, origin in {"trained", "loaded"})
    expected: list[int | None] = [None]
    if origin == "trained":
        expected = list(record.spec.seeds)
    elif now.weights is not None:
        expected = sorted(now.weights.states, key=lambda seed: seed or 0)
    yield same("seeds", seeds, expected)
    if origin != "trained":
        yield same("diverged at", [s.diverged_at for s in record.seeds], [None] * len(seeds))
    if now.weights is None:
        return
    states = now.weights.states
    are_theirs = same("seeds of the weights", sorted(states, key=str), sorted(seeds, key=str))
    yield are_theirs
    if not are_theirs.holds:
        return
    # One model first: a file of a few bytes may claim a thousand seeds of a large one.
    unlike = unlike_saved(built_model(now.plan, next(iter(states))), states)
    yield same("tensors in another form, or left out", unlike, [])
    if unlike:
        return
    built = built_models(now.plan, states)
    args = now.weights.model_args
    yield same("arguments in the file of weights", args, record.spec.model_args)
    if origin == "trained":
        copies = copied_seeds(trained_models(built, states, record.spec))
        yield same("seeds with the weights of another", copies, [])
    if now.plan.recipe is not None:
        yield same("frozen parameters that moved", moved_parameters(now.plan, states), [])
    replaced = replaced_tensors(built, states, record.spec, now.plan)
    yield same("tensors that training can't have changed", replaced, [])


def _training(record: Record, training: TrainingReport, recipe: Recipe) -> Iterator[Check]:
    """What the recipe decides, and the form of the curve; the curve itself is claimed."""
    seeds = record.seeds
    diverged = [seed.diverged_at for seed in seeds]
    ends_early = None not in diverged
    steps = min(training.steps, recipe.steps) if ends_early else recipe.steps
    yield same("training steps", training.steps, steps)
    yield same("training batch", training.batch, recipe.batch)
    yield same("training curve steps", training.curve_steps, _curve_steps(recipe, steps))
    widths = sorted({len(losses) for losses in training.curve})
    yield same("seeds of the training curve", widths, [len(seeds)] if training.curve else [])
    known = [step for step in diverged if step is not None]
    plausible = all(0 <= step < training.steps for step in known)
    yield Check("diverged at", known, f"steps from 0 to {training.steps - 1}", plausible)
    lost = {i for losses in training.curve for i, loss in enumerate(losses) if loss is None}
    unknown = sorted(i for i in lost if i < len(diverged) and diverged[i] is None)
    yield same("losses that are not finite without a divergence", unknown, [])
    model_steps = training.steps * len(seeds)
    yield _at_least("training seconds", training.seconds, model_steps * LEAST_SECONDS)
    rate = model_steps / training.seconds if training.seconds > 0 else 0.0
    fits = math.isclose(training.steps_per_second, rate, rel_tol=1e-6)
    yield Check("training steps per second", training.steps_per_second, rate, fits)
    yield _at_least("replicas", training.replicas, 1)
    if training.speedup is not None:
        yield _at_least("speedup", training.speedup, 1e-3)


def _curve_steps(recipe: Recipe, steps: int) -> list[int]:
    """Where a training of this recipe that took `steps` has the points of its curve."""
    chunks = math.ceil(max(1, recipe.steps // POINTS) / recipe.chunk)
    between = chunks * recipe.chunk
    return [*range(between, steps, between), steps] if steps else []


def _at_least(name: str, value: float, least: float) -> Check:
    return Check(name, value, f"at least {least:g}", value >= least)


def claims(record: Record, objects: Objects, stale: Sequence[str] | None = None) -> dict[str, str]:
    """What a record says of the past, which can't be computed; training again tests most of it.

    `objects` are those beside it; `stale` is `stale_code(record)`, where it is known.
    """
    environment, training = record.environment, record.training
    claimed = {
        "created": record.created,
        "device": environment.in_words,
        "seconds of evaluation": f"{record.main.seconds:.3g}",
    }
    if training is not None:
        claimed |= {
            "trained by this recipe": f"{record.spec.recipe}, {training.steps} steps",
            "seconds of training": f"{training.seconds:.3g}",
            "training curve": counted(len(training.curve_steps), "point"),
            "engine": f"{training.engine}, {counted(training.replicas, 'replica')}",
        }
        claimed |= cost_claims(record)
        diverged = [str(s.seed) for s in record.seeds if s.diverged_at is not None]
        claimed |= {"diverged": f"seeds {', '.join(diverged)}"} if diverged else {}
    if record.tuning is not None:
        claimed["tuning"] = trials_in_words(record.tuning.document)
    if record.spec.checkpoint_digest is not None:
        claimed["checkpoint"] = f"{record.spec.init or record.spec.weights}"
    stale = stale_code(record) if stale is None else stale
    if stale:
        claimed[OTHER_CODE] = ", ".join(stale)
    if record.answers is not None:
        claimed["answers"] = f"those of {visible(read_answers(record, objects).model, 200)}"
    if record.grader is not None and has_paid_grades(record):
        claimed["grades"] = f"those of {visible(record.grader.model or record.grader.name, 200)}"
    if record.grader is not None and record.grader.cost is not None:
        claimed["cost of grading"] = f"{record.grader.cost.requests} answers"
    if record.proof is not None:
        claimed["proof"] = f"{record.proof.kind} on {record.proof.created}"
    return claimed
