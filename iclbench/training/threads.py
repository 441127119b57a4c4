"""Threads that compute the parts of a step at once on a CPU, each with its share of the cores.

Cores that divide an operator wait for each other at its end; cores that divide a step, once a step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch

from ..devices import one_thread

#: As the built-in `map`, of one iterable.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def map_at_once(parts: int) -> Map:
    """A `map`, in order, by as many threads as torch is set to, but no more than parts.

    Its caller should have `one_thread` of torch meanwhile: more would wait for work of their own,
    for milliseconds, on cores that have some.
    """
    cores = torch.get_num_threads()
    threads = min(cores, parts)
    if threads <= 1:
        return map
    pool = _pool(threads, cores // threads)

    def mapped(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        # Autocast is a thread's own.
        reduced, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

        def call(item: Any) -> Any:
            with torch.autocast("cpu", dtype, enabled=reduced):
                return function(item)

        return pool.map(call, items)

    return mapped


@cache
def _pool(threads: int, share: int) -> ThreadPoolExecutor:
    """Threads with `share` threads of torch each."""
    pool = ThreadPoolExecutor(threads, "iclbench")
    all_started = threading.Barrier(threads)

    def start(_: int) -> None:
        all_started.wait()
        torch.get_num_threads()  # a thread takes the program's number at its first use of torch
        torch.set_num_threads(share)

    with one_thread():  # which gives the program its own number back
        list(pool.map(start, range(threads)))
    return pool
