"""A git repository in a folder, for tests of pull requests."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *words: object) -> str:
        names = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", "-C", self.folder, *names, *map(str, words)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self) -> str:
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--message", "change")
        return self.git("rev-parse", "HEAD")
