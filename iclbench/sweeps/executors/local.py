"""The executor `local`: this process, or one single-threaded process per worker.

With several workers, each sees one of the GPUs.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from ...api.errors import PLUGIN_FAILURES, Interrupted, RunError, first_line
from ...api.executor import Executor, JobListener
from ...api.spec import ResolvedSpec
from ...console import report
from ...devices import gpu_is_usable
from ...hookspecs import hookimpl
from ...plugins import host
from ...training.interruption import SIGNALS, ignore, interruptible

#: A job with its index.
Numbered = tuple[int, Any]


class Local(Executor):
    """Runs jobs on this machine; one worker runs them in this process.

    Here jobs and results need not be JSON values: whatever can be pickled will do.
    """

    name = "local"

    def map(
        self, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
    ) -> Generator[Numbered, None, None]:
        """See `Executor.map`."""
        listener = self.listener or JobListener()
        listener.jobs_begin(len(jobs))
        numbered = list(enumerate(jobs))
        while numbered and workers == 1 and gpu_is_usable():
            index, job = numbered.pop(0)
            listener.job_started(index)
            outcome = _outcome(function, job)
            listener.job_ended(index)
            yield index, outcome
        # For small models, one thread in each process beats several threads in one process.
        team = _Team(function, numbered, workers, self.listener)
        try:
            team.fill()
            while team.busy:
                finished = team.collect()
                team.fill()
                yield from finished
        finally:
            team.end()


def _outcome(function: Callable[[Any], Any], job: Any) -> Any:
    try:
        return function(job)
    except PLUGIN_FAILURES as error:
        return RunError(first_line(error))


def visible_gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES may name: the GPUs of this process."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        names = [name.strip() for name in given.split(",") if name.strip()]
        # CUDA takes no notice of an invalid one, such as -1, and of those after it.
        return list(itertools.takewhile(lambda name: not name.startswith("-"), names))
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]


@dataclass
class _Worker:
    """A process that runs one job after another; `index` is its job's, None while it has none.

    `gpu` is the only GPU that it sees, None if it sees all or there are none.
    """

    process: BaseProcess
    connection: Connection
    gpu: str | None
    index: int | None = None


class _Team:
    """The workers of one `map`, and the jobs that wait for one."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        jobs: list[Numbered],
        workers: int,
        listener: JobListener | None = None,
    ) -> None:
        self.function, self.workers = function, workers
        self.listener, self.is_heard = listener or JobListener(), listener is not None
        self.waiting = jobs[::-1]
        self.members: list[_Worker] = []
        self.gpus = visible_gpus()

    @property
    def busy(self) -> list[_Worker]:
        """The workers that have a job."""
        return [worker for worker in self.members if worker.index is not None]

    def fill(self) -> None:
        """Give waiting jobs to workers, starting those that are missing."""
        # A process that died while it had nothing to do gets no job.
        self.members = [w for w in self.members if w.index is not None or w.process.is_alive()]
        while self.waiting and len(self.busy) < self.workers:
            idle = next((worker for worker in self.members if worker.index is None), None)
            worker = idle or self._start()
            worker.index, job = self.waiting.pop()
            self.listener.job_started(worker.index)
            # `collect` tells of a process that has died before.
            with suppress(OSError):
                worker.connection.send((self.function, job, self.is_heard))

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        # A lone worker sees all GPUs: `--device cuda:1` then means the same one as here.
        gpu = self._free_gpu() if self.workers > 1 else None
        process = context.Process(target=_work, args=(theirs, gpu), name="iclbench worker")
        worker = _Worker(process, ours, gpu)
        with _signals_blocked():
            process.start()
            self.members.append(worker)
        theirs.close()
        return worker

    def _free_gpu(self) -> str | None:
        """The GPU that the fewest workers use."""
        used = [worker.gpu for worker in self.members]
        return min(self.gpus, key=used.count, default=None)

    def collect(self) -> list[Numbered]:
        """Wait until workers have something to tell; returns the outcomes of jobs that ended."""
        finished: list[Numbered] = []
        ready = wait([worker.connection for worker in self.busy])
        for worker in self.busy:
            if worker.connection not in ready:
                continue
            assert worker.index is not None
            try:
                outcome = worker.connection.recv()
            except (EOFError, OSError):
                worker.process.join()
                self.members.remove(worker)
                outcome = RunError(_death(worker.process.exitcode))
            if isinstance(outcome, _Last):
                self.members.remove(worker)
                outcome = outcome.outcome
            if isinstance(outcome, _HookCall):
                self.listener.job_called(worker.index, outcome.hook, outcome.values)
                continue
            index, worker.index = worker.index, None
            self.listener.job_ended(index)
            finished.append((index, outcome))
        return finished

    def end(self) -> None:
        """End every worker; one in the middle of a job saves a checkpoint first."""
        for worker in self.busy:
            worker.process.terminate()
        for worker in self.members:
            worker.connection.close()
        try:
            for worker in self.members:
                worker.process.join()
        except BaseException:  # a second signal: wait no longer
            for worker in self.members:
                worker.process.kill()
            raise


@dataclass(frozen=True)
class _Last:
    """The outcome of a job after which its worker can't use its GPU any more, and ends."""

    outcome: Any


@dataclass(frozen=True)
class _HookCall:
    """What a worker tells of a job that goes on: a run hook was called."""

    hook: str
    values: Mapping[str, Any]


class _Forwarding:
    """An observer that passes on what the progress display shows."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def _send(self, hook: str, **values: Any) -> None:
        with suppress(OSError):
            self.connection.send(_HookCall(hook, values))

    @hookimpl
    def iclbench_run_started(self, spec: ResolvedSpec) -> None:
        """Pass it on."""
        self._send("iclbench_run_started", spec=spec)

    @hookimpl
    def iclbench_training_step(
        self, spec: ResolvedSpec, step: int, loss: list[float], steps: int
    ) -> None:
        """Pass it on."""
        self._send("iclbench_training_step", spec=spec, step=step, loss=loss, steps=steps)


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        names = {member.value: member.name for member in signal.Signals}
        return f"its process was killed by {names.get(-code, f'signal {-code}')}"
    return f"its process ended with exit code {code}"


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals in a process that starts, until it is ready: Ctrl-C reaches the whole group."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # starting it would unblock the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, gpu: str | None) -> None:
    """Answer jobs until the connection is closed, or a signal ends the work."""
    if gpu is not None:
        # CUDA reads it when it is first used, which is later.
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        # A worker gets Ctrl-C from the terminal and SIGTERM from its parent: one is enough.
        with interruptible(second=ignore):
            if hasattr(signal, "pthread_sigmask"):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            _answer_all(connection)
    except Interrupted as error:
        if str(error):
            report(str(error))
        raise SystemExit(error.exit_code) from None


def _answer_all(connection: Connection) -> None:
    import torch

    torch.set_num_threads(1)
    with suppress(EOFError, OSError):  # the parent wants no more
        while gpu_is_usable():
            request = connection.recv_bytes()
            connection.send_bytes(_answer(request, connection))


def _answer(request: bytes, connection: Connection) -> bytes:
    """The pickled outcome of a pickled (function, job, whether somebody listens)."""
    try:
        function, job, is_heard = pickle.loads(request)
        observed = host().observing(_Forwarding(connection), "forwarding")
        with observed if is_heard else nullcontext():
            return _pickled(function(job))
    except PLUGIN_FAILURES as error:
        return _pickled(RunError(first_line(error)))


def _pickled(outcome: Any) -> bytes:
    return pickle.dumps(outcome if gpu_is_usable() else _Last(outcome))


def _exit_with_parent() -> None:
    # A killed parent can't stop its workers, which would compete with a restarted sweep.
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
