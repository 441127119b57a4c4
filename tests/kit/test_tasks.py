"""Tasks that break a promise are caught."""

from __future__ import annotations

import pytest
import torch

from iclbench import ConformanceError, Entry, Shift, host
from iclbench.kit.tasks import check_task
from iclbench.kit.trials import usable_task
from iclbench_least_squares.fixed import FixedConfig, LeastSquares


class DrawsElsewhere(LeastSquares):
    def arrange(self, draws):
        batch = super().arrange(draws)
        return batch._replace(target=batch.target + torch.rand(()))


class NoisyPrompts(LeastSquares):
    """Draws something of a training prompt elsewhere, and nothing of its target."""

    def training_batches(self, *args, **kwargs):
        batch = super().training_batches(*args, **kwargs)
        x = batch.prompt.x
        return batch._replace(prompt=batch.prompt._replace(x=x + 1e-6 * torch.rand_like(x)))


class Imprecise(LeastSquares):
    def exact_answer(self, batch):
        return super().exact_answer(batch).float()


class Unsteady(LeastSquares):
    def exact_answer(self, batch):
        answer = super().exact_answer(batch)
        return answer * (1 + 1e-12 * torch.rand(()).double())


class Inexact(LeastSquares):
    def exact_answer(self, batch):
        return super().exact_answer(batch) * (1 + 1e-6)


class Undescribed(LeastSquares):
    floor_summary = ""


class Helpless(LeastSquares):
    def chance(self, batch):
        return self.metrics(batch.target * torch.nan, batch)


class RoundsTargets(LeastSquares):
    def evaluation_batches(self, n, seed, dtype):
        batches = super().evaluation_batches(n, seed, dtype)
        return [batch._replace(target=batch.target.to(dtype)) for batch in batches]


class HasNoPrefixProperty(LeastSquares):
    def evaluation_draws(self, n, seed):
        return {name: v[::-1] for name, v in super().evaluation_draws(n, seed).items()}


class MixesRows(LeastSquares):
    """Arranges prompts that depend on the others."""

    def arrange(self, draws):
        return super().arrange({**draws, "x": draws["x"] - draws["x"].mean(dim=0)})


class KnowsOneReplica(LeastSquares):
    def training_batches(self, batches, size, generators, dtype):
        (generator,) = generators
        return super().training_batches(batches, size, [generator], dtype)


class DrawsTwice(LeastSquares):
    def draw(self, random):
        return {**super().draw(random), "w": random.normal("x", self.config.dim, 1)}


class NamesAShiftInWords(LeastSquares):
    @property
    def shifts(self):
        return {"Twice as large": Shift("of x", change=lambda d, _: {**d, "x": 2 * d["x"]})}


class ChangesNothing(LeastSquares):
    @property
    def shifts(self):
        return {"larger": Shift("twice x", change=lambda d, _: {**d, "xx": 2 * d["x"]})}


class ChangesWhatIsNotThere(LeastSquares):
    @property
    def shifts(self):
        return {"larger": Shift("twice x", change=lambda d, _: {**d, "x": 2 * d["inputs"]})}


class Relabels(LeastSquares):
    """The shift adds a draw that `arrange` knows."""

    @property
    def shifts(self):
        return {"larger": Shift("twice x", change=lambda d, _: {**d, "factor": 2 * d["w"][:, :1]})}

    def arrange(self, draws):
        draws = dict(draws)
        return super().arrange({"x": draws["x"] * draws.get("factor", 1.0), "w": draws["w"]})


class ReturnsNoDraws(LeastSquares):
    @property
    def shifts(self):
        return {"larger": Shift("twice x", change=lambda d, _: d.update(x=2 * d["x"]))}


class MixesErrors(LeastSquares):
    """A loss that broadcasts (B, 1) against (B, 1, 1)."""

    def metrics(self, prediction, batch):
        errors = prediction[:, 0] - batch.target
        return {"squared_error": errors.square().mean(dim=(1, 2))}


class BroadcastsItsReference(LeastSquares):
    """A reference without a dimension, which differences with the targets would broadcast."""

    def reference(self, batch):
        return torch.zeros(len(batch.target), 1, dtype=torch.float64)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (
            BroadcastsItsReference,
            r"reference\(\) returns \(8, 1\), not a prediction's \(8, 1, 1\)",
        ),
        (MixesErrors, r"metrics\(\) mixes prompts: squared_error of a prompt changes with"),
        (DrawsElsewhere, "more than the generator"),
        (NoisyPrompts, "training prompts depend on more than the generator"),
        (RoundsTargets, "must stay float64"),
        (HasNoPrefixProperty, "first prompts"),
        (MixesRows, "replicas beside it"),
        (KnowsOneReplica, "3 replicas at once"),
        (Imprecise, r"is torch.float32 of shape \(.*\), and must be torch.float64 of shape"),
        (Unsteady, "differs between two calls"),
        (Inexact, "further from the target"),
        (Undescribed, "must say what the floor is"),
        (Helpless, "finite values"),
        (NamesAShiftInWords, "the shift 'Twice as large' needs letters"),
        (ChangesNothing, "the change of shift larger: unknown draw 'xx'; did you mean 'x'"),
        (ChangesWhatIsNotThere, "the shift larger: KeyError: 'inputs'"),
        (ReturnsNoDraws, "the change of shift larger returns NoneType, not the draws"),
    ],
)
def test_a_task_that_breaks_its_promise_is_caught(task, reason):
    with pytest.raises(ConformanceError, match=reason):
        check_task(task(FixedConfig()))


def test_a_shift_may_add_a_draw_that_arrange_reads():
    check_task(Relabels(FixedConfig()))


def test_a_quantity_that_is_drawn_twice_is_caught():
    with pytest.raises(ValueError, match="'x' twice"):
        check_task(DrawsTwice(FixedConfig()))


def test_models_are_tried_on_the_task_as_it_is_now(provide):
    """A task that is corrected in a notebook takes the place of the wrong one."""
    wrong, corrected = (type("Noted", (LeastSquares,), {"name": "noted"}) for _ in range(2))
    provide("task", "noted", wrong)
    assert type(usable_task("noted")) is wrong
    host().plugins[-1].entries["task"] = (Entry("noted", "for a test", corrected),)
    assert type(usable_task("noted")) is corrected
