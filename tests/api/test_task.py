"""The harness's part of a task: precision, targets, cases and digests."""

from __future__ import annotations

import pytest
import torch

from iclbench import Batch, Sequence, Task, TaskConfig, load_task, training_batch


class Noisy(Task[TaskConfig]):
    """Tokens x + noise; the target is 2x."""

    name, version, Config = "noisy", 1, TaskConfig
    unrounded = frozenset({"noise"})
    signature = None

    def draw(self, random):
        return {"x": random.normal("x", 3, 1), "noise": random.normal("noise", 3, 1)}

    def arrange(self, draws):
        self.draws = draws
        return Batch(Sequence(draws["x"] + draws["noise"]), 2 * draws["x"], {"x": draws["x"]})

    def loss(self, prediction, target):
        return (prediction - target).square().mean(dim=(1, 2))

    def metrics(self, prediction, batch):
        return {"squared_error": self.loss(prediction, batch.target)}


class Exact(Noisy):
    exact = True


class Answering(Noisy):
    def answer(self, batch):
        return batch.prompt.tokens.double()


class Sized(Noisy):
    cases = (2, 5)


def is_exact_in(values, dtype) -> bool:
    return torch.equal(values, values.to(dtype).to(values.dtype))


def test_evaluation_rounds_draws_and_prompts_but_not_targets_and_unrounded_draws():
    task = Noisy(TaskConfig())
    (batch,) = task.evaluation_batches(4, 0, torch.float32)
    assert batch.prompt.tokens.dtype == torch.float32
    assert batch.target.dtype == batch.truth["x"].dtype == torch.float64
    assert is_exact_in(task.draws["x"], torch.float32)
    assert not is_exact_in(task.draws["noise"], torch.float32)
    sums = (task.draws["x"] + task.draws["noise"]).to(torch.float32)
    assert torch.equal(batch.prompt.tokens, sums)


def test_target_may_follow_from_the_rounded_prompt():
    (batch,) = Answering(TaskConfig()).evaluation_batches(4, 0, torch.float32)
    assert torch.equal(batch.target, batch.prompt.tokens.double())


@pytest.mark.parametrize(("cls", "dtype"), [(Noisy, torch.float32), (Exact, torch.float64)])
def test_training_draws_in_the_run_s_dtype_unless_exact(cls, dtype):
    task = cls(TaskConfig())
    generators = [torch.Generator().manual_seed(r) for r in range(3)]
    batch = task.training_batches(2, 5, generators, torch.float32)
    assert task.draws["noise"].dtype == dtype
    assert batch.prompt.tokens.shape == (3, 2, 5, 3, 1)
    assert batch.prompt.tokens.dtype == batch.target.dtype == torch.float32
    assert is_exact_in(task.draws["x"], torch.float32)


def test_training_batch_is_that_of_one_replica():
    task = Noisy(TaskConfig())
    batch = training_batch(task, 6, torch.Generator().manual_seed(0), torch.float64)
    batches = task.training_batches(1, 6, [torch.Generator().manual_seed(0)], torch.float64)
    assert torch.equal(batch.target, batches.target[0, 0])


def test_each_case_has_its_own_batch_and_draws():
    task = Sized(TaskConfig())
    first, second = task.evaluation_batches(4, 0, torch.float64)
    assert not torch.equal(first.target, second.target)
    assert set(task.evaluation_draws(4, 0)) == {"x 2", "x 5", "noise 2", "noise 5"}


def test_digest_identifies_the_draws():
    task = Noisy(TaskConfig())
    assert task.evaluation_digest(4, 0) == Noisy(TaskConfig()).evaluation_digest(4, 0)
    assert task.evaluation_digest(4, 0) != task.evaluation_digest(4, 1)
    assert task.evaluation_digest(4, 0) != task.evaluation_digest(5, 0)


def test_prompts_under_a_shift_have_a_digest_of_their_own():
    task = load_task("least-squares", dim=2, examples=4)
    digests = {task.shifted(name).evaluation_digest(4, 0) for name in task.shifts}
    assert len(digests | {task.evaluation_digest(4, 0)}) == len(task.shifts) + 1


def test_without_a_reference_there_is_no_floor():
    task = Noisy(TaskConfig())
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    assert task.floor(batch, None) == {}


def test_a_title_is_the_name_unless_a_task_says_more():
    assert Noisy(TaskConfig()).title == "noisy"
