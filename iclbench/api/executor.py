"""Executor: runs the programs of a sweep, on this machine or elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar


class Executor(ABC):
    """Runs independent jobs in processes. `iclbench.check_executor` checks what is said here.

    **Processes, not threads.** A run sets the default dtype and the random generators of its
    process, so a process refuses a second run at the same time. One worker may be the calling
    process; several are processes of their own.

    **JSON values.** Jobs and their results are JSON values, and the function is importable by its
    name, so that a job can go to another machine. Jobs share a file system: they write records.

    **Failures.** A job that raises, or whose process dies, has an exception as its result. The
    other jobs are not affected.

    **Interruption.** When the generator is closed, or KeyboardInterrupt is raised while it waits,
    jobs that have not started never start. Those that run get SIGTERM and the time to save a
    checkpoint. No process is left when the generator has ended.

    **Repetition.** A job may be run again, after a failure or on another machine, but not twice at
    the same time. It skips the records that exist and continues from its checkpoint.
    """

    #: What users type: lower-case words joined by hyphens.
    name: ClassVar[str]

    @abstractmethod
    def map(
        self, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
    ) -> Generator[tuple[int, Any], None, None]:
        """Yield (index of the job, result) once per job, as jobs finish, in any order.

        At most `workers` jobs run at once.
        """
