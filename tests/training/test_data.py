"""Training data do not depend on how they are drawn: alone, together, ahead or by threads."""

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


def together(data: Data) -> Data:
    """Draw the replicas of a task together, as on a GPU."""
    data.groups = groups_of(data.tasks, torch.device("cuda"))
    return data


@pytest.mark.parametrize("name", TASKS)
def test_replicas_drawn_together_get_the_same_data_as_alone(name):
    task = load_task(name.split(" ")[0], **TASKS[name])
    alone, at_once = data([task] * 3), together(data([task] * 3))
    assert len(alone.groups) == 3
    assert len(at_once.groups) == 1
    for _ in range(2):  # the generators also continue in the same way
        for a, b in zip(fields(at_once.next()), fields(alone.next()), strict=True):
            assert a.shape[:3] == (3, 4, 6)
            assert a.stride() == b.stride()
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert alone.generators[0].get_state().equal(at_once.generators[0].get_state())


def test_data_of_a_replica_do_not_depend_on_others():
    task = load_task("ridge", ridge=(0.1, 1.0))
    both, second = data([task] * 2), Data([task], [1], RECIPE, CPU, torch.float64)
    for a, b in zip(fields(both.next()), fields(second.next()), strict=True):
        assert torch.equal(a[1], b[0])


def test_replicas_of_several_tasks_keep_their_order():
    noisy, clean = least_squares(noise=1.0), least_squares()
    tasks = [noisy, clean, noisy, clean]
    assert equal(data(tasks).next(), together(data(tasks)).next())


def test_drawing_together_takes_the_same_operators_for_any_number_of_replicas():
    """Except for the draws themselves, of which least squares has two."""

    def operators(replicas: int) -> dict[str, int]:
        source = together(data([least_squares()] * replicas))
        with Operators() as seen:
            source.next()
        return seen.counts

    few, many = operators(2), operators(50)
    assert (few.pop("normal_"), many.pop("normal_")) == (4, 100)
    assert few == many


def test_next_chunk_is_drawn_late_if_two_do_not_fit(monkeypatch):
    source, expected = data([least_squares()]), data([least_squares()])
    source.ahead = True
    assert equal(source.next(), expected.next())
    draw, attempts = source.draw, []

    def out_of_memory(generators, batches, step):
        draw(generators, batches, step)
        attempts.append(batches)
        raise torch.OutOfMemoryError

    monkeypatch.setattr(source, "draw", out_of_memory)
    source.prepare()
    monkeypatch.undo()
    source.prepare()
    assert attempts
    assert not source.ahead
    assert equal(source.next(), expected.next())


def test_drawing_ahead_gives_the_same_training(tmp_path):
    """To the bit, and after a kill too: chunks drawn ahead of a checkpoint are drawn again."""

    def ahead(steps: int):
        trainer = training([1, 2], steps=steps)
        trainer.data.ahead = True
        return trainer

    whole = training([1, 2]).run(None, lambda step, loss: None)
    trainer = ahead(30)
    drawn = []
    prepare = trainer.data.prepare
    trainer.data.prepare = lambda step: drawn.append(step) or prepare(step)
    assert same(trainer.run(None, lambda step, loss: None), whole)
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


def test_threads_draw_the_same_data(monkeypatch):
    monkeypatch.setattr(threads, "usable_cores", lambda: 64)
    torch.set_num_threads(2)
    in_turn, by_threads = (data([least_squares()] * 5) for _ in range(2))
    by_threads.map = map_at_once(5)
    assert by_threads.map is not map
    assert equal(in_turn.next(), by_threads.next())
    assert torch.get_num_threads() == 2
