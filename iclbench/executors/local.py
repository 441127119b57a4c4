"""The executor `local`: this process, or one single-threaded process a worker."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from . import Executor


class Local(Executor):
    """Runs jobs on this machine; with one worker in this very process."""

    name = "local"

    def map(
        self, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
    ) -> Iterator[tuple[int, Any]]:
        """See `Executor.map`."""
        if workers == 1:
            for index, job in enumerate(jobs):
                yield index, function(job)
            return
        # Small models are bound by arithmetic: a thread a process beats threads within one.
        pool = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), initializer=_use_one_thread
        )
        with pool:
            futures = {pool.submit(function, job): index for index, job in enumerate(jobs)}
            for future in as_completed(futures):
                error = future.exception()
                yield futures[future], error if error is not None else future.result()


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)
