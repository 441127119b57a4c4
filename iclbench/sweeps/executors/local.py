"""The executor `local`: this process, or one single-threaded process per worker."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ...api.executor import Executor


class Local(Executor):
    """Runs jobs on this machine; one worker runs them in this process."""

    name = "local"

    def map(
        self, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
    ) -> Iterator[tuple[int, Any]]:
        """See `Executor.map`."""
        if workers == 1:
            for index, job in enumerate(jobs):
                yield index, function(job)
            return
        # For small models, one thread in each process beats several threads in one process. Each
        # worker has its own pool, since a dead process breaks its whole pool.
        slots = threading.local()

        def in_process(job: Any) -> Any:
            if getattr(slots, "pool", None) is None:
                slots.pool = _one_process()
            try:
                return slots.pool.submit(function, job).result()
            except BrokenProcessPool:
                slots.pool = None
                raise

        with ThreadPoolExecutor(workers) as threads:
            futures = {threads.submit(in_process, job): i for i, job in enumerate(jobs)}
            for future in as_completed(futures):
                error = future.exception()
                yield futures[future], error if error is not None else future.result()


def _one_process() -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, context, initializer=_start_worker, initargs=(os.getpid(),))


def _start_worker(parent: int) -> None:
    import torch

    torch.set_num_threads(1)
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: int) -> None:
    # A killed parent can't stop its workers, which would compete with a restarted sweep.
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
