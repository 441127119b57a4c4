"""Threads that compute the parts of a step at once on a CPU, each with its share of the cores.

Cores that divide an operator wait for each other at its end; cores that divide a step wait once a
step.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import torch

#: As the built-in `map`, of one iterable.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def one_thread() -> AbstractContextManager[None]:
    """Leave torch one CPU thread: threads that share small operations wait for each other."""
    return torch_threads(1)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Give torch that many CPU threads within a block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def map_at_once(parts: int) -> Map:
    """Return a `map`, in order, by as many threads as torch is set to, but no more than parts.

    Its caller should leave torch `one_thread` meanwhile: idle threads of torch spin for
    milliseconds on cores that have work.
    """
    cores = torch.get_num_threads()
    threads = min(cores, parts)
    if threads <= 1 or usable_cores() < threads:
        return map

    def mapped(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        # Autocast state is thread-local; copy it.
        enabled, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

        def call(item: Any) -> Any:
            with torch.autocast("cpu", dtype, enabled=enabled):
                return function(item)

        return _pool(threads, cores // threads).map(call, items)

    return mapped


def usable_cores() -> int:
    """Cores that a new thread may run on: one, where OpenMP has bound the first thread to it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _pool(threads: int, share: int) -> ThreadPoolExecutor:
    """Return a pool whose threads have `share` threads of torch each."""
    pool = ThreadPoolExecutor(threads, "iclbench")
    all_started = threading.Barrier(threads)

    def start(_: int) -> None:
        all_started.wait()
        torch.get_num_threads()  # a thread takes the program's number at its first use of torch
        torch.set_num_threads(share)
        torch.set_flush_denormal(True)  # as the thread that takes the steps

    try:
        with one_thread():  # gives the program its own number back
            list(pool.map(start, range(threads)))
    except BaseException:
        all_started.abort()  # or threads that have started would wait forever
        raise
    return pool


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork does not copy threads
