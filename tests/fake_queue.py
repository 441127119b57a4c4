"""An executor with a queue that is a folder: a job runs when the test says so, in this process."""

from __future__ import annotations

import json
import pkgutil
from pathlib import Path

from iclbench import Config, QueuedJob, QueueExecutor


class FakeQueueConfig(Config):
    """No more than a name, so that it can be told what was given."""

    partition: str = "any"


class FakeQueue(QueueExecutor):
    """Jobs are files `NUMBER.json` with the fields of QueuedJob; each look at the queue runs one.

    `looks` counts them; `held` jobs never start.
    """

    name = "fake-queue"
    Config = FakeQueueConfig
    poll_seconds = 0.0
    held = False
    looks = 0
    broken: tuple[int, ...] = ()

    def submit(self, function, jobs, workers):
        ids = []
        self.folder.mkdir(parents=True, exist_ok=True)
        for job in jobs:
            number = len(self._files())
            address = f"{function.__module__}:{function.__qualname__}"
            content = {"id": str(number), "job": job, "state": "waiting", "reason": "Priority"}
            self._write(number, {**content, "log": f"{number}.log", "function": address})
            ids.append(str(number))
        return ids

    def queue(self):
        type(self).looks += 1
        if not self.held:
            self.run_next()
        contents = [json.loads(file.read_text()) for file in self._files()]
        return [QueuedJob(**{k: v for k, v in c.items() if k != "function"}) for c in contents]

    def cancel(self, ids):
        for number in ids:
            self.change(int(number), state="cancelled", reason="it was cancelled")

    def run_next(self):
        """Run the first job that waits."""
        for number, file in enumerate(self._files()):
            content = json.loads(file.read_text())
            if content["state"] == "waiting":
                if number in self.broken:
                    self.change(number, state="failed", reason="its node burnt")
                    return
                result = pkgutil.resolve_name(content["function"])(content["job"])
                self.change(number, state="done", reason="", result=result)
                return

    def change(self, number, **fields):
        file = self._files()[number]
        self._write(number, {**json.loads(file.read_text()), **fields})

    def _write(self, number, content):
        (self.folder / f"{number:03d}.json").write_text(json.dumps(content))

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.json"))
