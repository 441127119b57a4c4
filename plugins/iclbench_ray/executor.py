"""Ray: runs programs as tasks of a Ray cluster, a process for each."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from iclbench import Config, Executor, RunError, UsageError

from .task import answer

#: How long to wait at a time for a task; signals are handled in between.
WAIT_SECONDS = 1.0
#: How long a cluster may take to accept a connection.
CONNECT_SECONDS = 10.0


class RayConfig(Config):
    """The arguments of the executor `ray`."""

    address: str | None = Field(
        None,
        description="address of a Ray cluster, such as HOST:6379, or auto; default: Ray on this "
        "machine",
    )
    num_cpus: float = Field(1.0, ge=0, description="number of cores per program")
    num_gpus: float = Field(
        0.0, ge=0, description="number of GPUs per program; a fraction shares a GPU"
    )
    resources: dict[str, float] = Field(
        {}, description="custom resources of the cluster, per program"
    )


class Ray(Executor):
    """Programs as Ray tasks. One whose worker is killed is run once more."""

    name = "ray"
    Config = RayConfig
    remote = True
    #: Tasks that Ray has at a time; it runs those for which there are resources.
    workers = 256
    #: A process ends after so many tasks, and releases a GPU's memory with it.
    tasks_per_process: ClassVar[int] = 1
    retries: ClassVar[int] = 1

    def map(
        self, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
    ) -> Generator[tuple[int, Any], None, None]:
        """See `Executor.map`."""
        with self._connected() as ray:
            yield from self._map(ray, function, jobs, workers)

    def _map(
        self, ray: Any, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
    ) -> Generator[tuple[int, Any], None, None]:
        address = f"{function.__module__}:{function.__qualname__}"
        stop, here = self.folder / f"{uuid.uuid4().hex}.stop", str(Path.cwd())
        task = ray.remote(
            num_cpus=self.config.num_cpus,
            num_gpus=self.config.num_gpus,
            resources=self.config.resources or None,
            max_calls=self.tasks_per_process,
            max_retries=self.retries,
        )(answer)
        waiting = iter(enumerate(jobs))
        # Only tasks in flight are held, so memory does not grow with the number of jobs.
        running: dict[Any, int] = {}
        try:
            while True:
                while len(running) < workers and (numbered := next(waiting, None)) is not None:
                    index, job = numbered
                    running[task.remote(address, json.dumps(job), str(stop), here)] = index
                if not running:
                    return
                ready, _ = ray.wait(list(running), num_returns=1, timeout=WAIT_SECONDS)
                for reference in ready:
                    index = running.pop(reference)
                    yield index, _outcome(ray, reference)
                    del reference
        finally:
            if running:
                self._end(ray, stop, list(running))

    def _end(self, ray: Any, stop: Path, running: list[Any]) -> None:
        """Cancel what waits, and have what runs save a checkpoint."""
        self.folder.mkdir(parents=True, exist_ok=True)
        stop.touch()
        try:
            for reference in running:
                ray.cancel(reference)
            while running:
                _, running = ray.wait(running, num_returns=len(running), timeout=WAIT_SECONDS)
        finally:
            stop.unlink(missing_ok=True)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Ray, connected to the cluster; what is connected already stays so."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError as error:
            raise UsageError(f"executor ray: {error}; install iclbench[ray]") from None
        if ray.is_initialized():
            yield ray
            return
        _require_reachable(self.config.address)
        local: dict[str, Any] = {"include_dashboard": False}
        with _handlers_kept():
            try:
                ray.init(
                    address=self.config.address or "local",
                    logging_level=logging.WARNING,
                    **({} if self.config.address else local),
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise UsageError(f"executor ray: {str(error).splitlines()[0]}") from None
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep this process's handlers of signals within the block, where Ray sets its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError):  # one that Python did not install
                signal.signal(number, handler)


def _outcome(ray: Any, reference: Any) -> Any:
    try:
        outcome = json.loads(ray.get(reference))
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()
        return RunError(f"{type(error).__name__}: {reason[0] if reason else 'no reason'}")
    return RunError(outcome["error"]) if "error" in outcome else outcome["result"]


def _require_reachable(address: str | None) -> None:
    """Raise UsageError where nothing listens at HOST:PORT; Ray itself would print for 20 s."""
    host, separator, port = (address or "").removeprefix("ray://").rpartition(":")
    if not separator or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"executor ray: {address} can't be reached: {error}") from None
