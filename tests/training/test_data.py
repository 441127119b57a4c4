"""What replicas train on: the same whether drawn one by one, at once, ahead, or by threads."""

from __future__ import annotations

import pytest
import torch
from test_loop import CPU, same, training

from iclbench import Recipe, load_task
from iclbench.training import threads
from iclbench.training.checkpoints import Checkpoint
from iclbench.training.data import Data, draws_at_once
from iclbench.training.gradients.capacity import Operators
from iclbench.training.resumption import Resumption
from iclbench.training.threads import map_at_once
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_linear_systems.task import LinearSystems

RECIPE = Recipe(steps=100, batch=6, chunk=4)


def data(tasks, dtype=torch.float64) -> Data:
    return Data(tasks, range(len(tasks)), RECIPE, CPU, dtype)


def least_squares(**args):
    return LeastSquares(FixedConfig(dim=2, examples=4, **args))


def equal(a, b) -> bool:
    fields = zip((*a.prompt, a.target), (*b.prompt, b.target), strict=True)
    return all(torch.equal(x, y) for x, y in fields)


TASKS = {
    "least-squares": {"noise": 0.5, "condition_number": 9.0},
    "ridge": {"ridge": (0.1, 1.0)},
    "gradient": {},
    "linear-system": {},
    "linear-system of several sizes": {"sizes": "2-4"},
    "categorical": {},
    "categorical from a pool": {"pool": 7},
    "categorical-quadrants": {},
    "imagenet": {},
    "square": {},
}


@pytest.mark.parametrize("name", TASKS)
def test_replicas_drawn_at_once_get_what_each_draws(name):
    task = load_task(name.split(" ")[0], **TASKS[name])
    each, at_once = data([task] * 3), data([task] * 3)
    at_once.at_once = True
    for _ in range(2):  # and the generators go on alike
        expected, found = each.next(), at_once.next()
        for a, b in zip((*found.prompt, found.target), (*expected.prompt, expected.target),
                        strict=True):  # fmt: skip
            assert a.shape[:3] == (3, 4, 6)
            assert a.stride() == b.stride()
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert each.generators[0].get_state().equal(at_once.generators[0].get_state())


def test_replicas_of_several_tasks_keep_their_usable_cores():
    noisy, clean = least_squares(noise=1.0), least_squares()
    tasks = [noisy, clean, noisy, clean]
    each, at_once = data(tasks), data(tasks)
    at_once.at_once = True
    assert equal(each.next(), at_once.next())


def test_drawing_at_once_takes_no_more_operators_for_more_replicas():
    """But for the draws themselves, of which least squares has two."""

    def operators(replicas: int) -> dict[str, int]:
        made = data([least_squares()] * replicas)
        made.at_once = True
        with Operators() as seen:
            made.next()
        return seen.counts

    few, many = operators(2), operators(50)
    assert (few.pop("normal_"), many.pop("normal_")) == (4, 100)
    assert few == many


class Sampled(LeastSquares):
    def sample(self, n, generator, device, dtype):
        return super().sample(n, generator, device, dtype)


class Drawn(LeastSquares):
    def drawn(self, streams):
        return super().drawn(streams)


def test_a_task_that_overrides_sample_alone_is_drawn_for_each_replica():
    expected = {LeastSquares: True, LinearSystems: True, Drawn: True, Sampled: False}
    assert {cls: draws_at_once(cls(cls.Config())) for cls in expected} == expected


class OtherDraws(LeastSquares):
    """Less than a batch would show."""

    def sample_replicas(self, *how):
        found = super().sample_replicas(*how)
        torch.rand((), generator=how[2][0])
        return found


class OtherPrompts(LeastSquares):
    def sample_replicas(self, *how):
        found = super().sample_replicas(*how)
        return found._replace(target=2.0 * found.target)


class OtherType(LeastSquares):
    def sample_replicas(self, *how):
        found = super().sample_replicas(*how)
        return found._replace(target=found.target.float())


class Raises(LeastSquares):
    def sample_replicas(self, *how):
        raise ValueError


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (LeastSquares, None),
        (OtherDraws, "other draws at once"),
        (OtherPrompts, "other prompts at once"),
        (OtherType, "other prompts at once"),
        (Raises, "ValueError at once"),
    ],
)
def test_what_differs_at_once_is_found_out(task, expected):
    made = task(FixedConfig(dim=2, examples=4))
    assert data([made, made]).disagreement() == expected


def test_where_two_chunks_do_not_fit_the_next_is_drawn_in_time(monkeypatch):
    made, expected = data([least_squares()]), data([least_squares()])
    made.ahead = True
    assert equal(made.next(), expected.next())
    draw, full = made.draw, []

    def too_much(generators, batches):
        draw(generators, batches)
        full.append(True)
        raise torch.OutOfMemoryError

    monkeypatch.setattr(made, "draw", too_much)
    made.prepare()
    monkeypatch.undo()
    made.prepare()
    assert full
    assert not made.ahead
    assert equal(made.next(), expected.next())


def test_what_is_drawn_ahead_is_what_is_drawn_in_time(tmp_path):
    """To the bit, and after a cut too; what was drawn ahead of a checkpoint is drawn again."""

    def ahead(steps: int):
        made = training([1, 2], steps=steps)
        made.data.ahead = True
        return made

    whole = training([1, 2]).run(None, lambda step, loss: None)
    made = ahead(30)
    drawn = []
    prepare = made.data.prepare
    made.data.prepare = lambda: drawn.append(made.step) or prepare()
    assert same(made.run(None, lambda step, loss: None), whole)
    assert drawn == [5, 10, 15, 20, 25]  # nothing after the last step

    keep = Resumption(tmp_path / "checkpoint", every_seconds=0.0)
    cut = ahead(30)

    def stop(step, loss):
        if step == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut.run(keep, stop)
    assert Checkpoint.load(keep.path).values["step"] == 10
    assert same(ahead(30).run(keep, lambda step, loss: None), whole)


def test_threads_draw_what_is_drawn_in_turn(monkeypatch):
    monkeypatch.setattr(threads, "_usable_cores", lambda: 64)
    torch.set_num_threads(2)
    in_turn, by_threads = (data([least_squares()] * 5) for _ in range(2))
    by_threads.map = map_at_once(5)
    assert by_threads.map is not map
    assert equal(in_turn.next(), by_threads.next())
    assert torch.get_num_threads() == 2
