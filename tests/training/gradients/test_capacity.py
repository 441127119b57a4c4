"""How many replicas are one program, and how many slices a batch has."""

from __future__ import annotations

import pytest
import torch
from toys import Counting, Small, context, loss, stacked
from trainings import training

from iclbench.training.gradients.capacity import (
    SLICE_ELEMENTS,
    cpu_group_size,
    cpu_slices,
    elements_per_operator,
    fitting_group_size,
    measured_speedup,
)
from iclbench.training.gradients.plain import Plain
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.gradients.vmapped import Vmapped


@pytest.mark.parametrize(("elements", "group"), [(1e3, 16), (10_000, 8), (25_000, 6), (40_000, 1)])
def test_groups_keep_operators_small_and_are_balanced(elements, group):
    assert cpu_group_size(16, elements) == group


def test_threads_divide_operators_that_are_small_and_replicas_whose_are_not():
    torch.set_num_threads(2)
    assert [cpu_group_size(16, e) for e in (1e3, 20_000, 25_000, 40_000)] == [16, 8, 8, 1]


def test_large_batches_have_slices_and_small_ones_or_buffers_have_not():
    small, buffered = stacked(Small)[1], stacked(Counting)[1]
    small.template.register_buffer("scale", None)
    assert cpu_slices(small, 100, SLICE_ELEMENTS) == 1
    assert cpu_slices(small, 100, 3 * SLICE_ELEMENTS) == 4
    assert cpu_slices(small, 3, 100 * SLICE_ELEMENTS) == 3
    assert cpu_slices(buffered, 100, 3 * SLICE_ELEMENTS) == 1


def test_the_size_of_operators_is_a_count_and_no_timing():
    _, replicas, batch = stacked(Small)
    program = Threaded(replicas.first(), loss, context())
    assert len({elements_per_operator(program, batch) for _ in range(3)}) == 1


def test_on_a_cpu_small_replicas_are_grouped_and_large_ones_are_not():
    for batch, expected in ((4, 8), (4096, 1)):
        trainer = training(8, recipe={"batch": batch})
        assert trainer.choice.how.group_size == expected
        assert (trainer.choice.speedup is None) == (expected == 1)


def test_large_batches_are_taken_in_slices_on_a_cpu():
    assert training(1, recipe={"batch": 8192}).choice.how.slices > 1
    assert training(1).choice.how.slices == 1


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("CUBLAS_STATUS_ALLOC_FAILED")],
)
def test_replicas_are_halved_until_they_fit_in_memory(error):
    tried = []

    def make(size):
        def program(batch):
            tried.append(size)
            if size > 2:
                raise error

        return program

    assert fitting_group_size(7, make, None) == 2
    assert tried == [7, 4, 2]


def test_one_replica_that_does_not_fit_is_an_error():
    def make(size):
        def program(batch):
            raise torch.OutOfMemoryError("CUDA out of memory")

        return program

    with pytest.raises(torch.OutOfMemoryError):
        fitting_group_size(2, make, None)


def test_other_failures_are_not_tried_in_smaller_groups():
    tried = []

    def make(size):
        tried.append(size)
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        fitting_group_size(4, make, None)
    assert tried == [4]


def test_the_speedup_is_of_one_replica_s_gradient():
    _, replicas, batch = stacked(Small)
    grouped = Vmapped(replicas, loss, context(), 3)
    assert 0 < measured_speedup(grouped, Plain(replicas.first(), loss), batch) < 100
