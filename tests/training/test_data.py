"""Training data are the same whether drawn alone, together, ahead of time or by threads."""

from __future__ import annotations

import pytest
import torch
from small import same, training
from support import CPU

from iclbench import Recipe, load_task
from iclbench.training import threads
from iclbench.training.checkpoints import Checkpoint
from iclbench.training.data import Data, groups_of
from iclbench.training.gradients.capacity import Operators
from iclbench.training.resumption import Resumption
from iclbench.training.threads import map_at_once
from iclbench_least_squares.fixed import FixedConfig, LeastSquares

RECIPE = Recipe(steps=100, batch=6, chunk=4)


def data(tasks, dtype=torch.float64) -> Data:
    return Data(tasks, range(len(tasks)), RECIPE, CPU, dtype)


def least_squares(**args):
    return LeastSquares(FixedConfig(dim=2, examples=4, **args))


def fields(batch):
    return (*batch.prompt, batch.target)


def equal(a, b) -> bool:
    return all(torch.equal(x, y) for x, y in zip(fields(a), fields(b), strict=True))


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


def together(made: Data) -> Data:
    """The same data with the replicas of a task drawn together, as on a GPU."""
    made.groups = groups_of(made.tasks, torch.device("cuda"))
    return made


@pytest.mark.parametrize("name", TASKS)
def test_replicas_drawn_together_get_what_each_draws_alone(name):
    task = load_task(name.split(" ")[0], **TASKS[name])
    alone, at_once = data([task] * 3), together(data([task] * 3))
    assert len(alone.groups) == 3
    assert len(at_once.groups) == 1
    for _ in range(2):  # the generators continue alike
        for a, b in zip(fields(at_once.next()), fields(alone.next()), strict=True):
            assert a.shape[:3] == (3, 4, 6)
            assert a.stride() == b.stride()
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert alone.generators[0].get_state().equal(at_once.generators[0].get_state())


def test_a_replica_s_data_do_not_depend_on_the_others():
    task = load_task("ridge", ridge=(0.1, 1.0))
    both, second = data([task] * 2), Data([task], [1], RECIPE, CPU, torch.float64)
    for a, b in zip(fields(both.next()), fields(second.next()), strict=True):
        assert torch.equal(a[1], b[0])


def test_replicas_of_several_tasks_keep_their_order():
    noisy, clean = least_squares(noise=1.0), least_squares()
    tasks = [noisy, clean, noisy, clean]
    assert equal(data(tasks).next(), together(data(tasks)).next())


def test_drawing_together_takes_no_more_operators_for_more_replicas():
    """Except for the draws themselves, of which least squares has two."""

    def operators(replicas: int) -> dict[str, int]:
        made = together(data([least_squares()] * replicas))
        with Operators() as seen:
            made.next()
        return seen.counts

    few, many = operators(2), operators(50)
    assert (few.pop("normal_"), many.pop("normal_")) == (4, 100)
    assert few == many


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
