"""Suites of boards: core, precision, smoke and papers."""

from pathlib import Path

from iclbench import Entry, hookimpl

_FOLDER = Path(__file__).parent


@hookimpl
def iclbench_suites() -> list[Entry]:
    """core, precision, smoke and papers."""
    return [
        Entry("core", "a board of every kind of task, ten core minutes per seed",
              _FOLDER / "core.toml"),
        Entry("precision", "noiseless regression and linear systems, in float32 and float64",
              _FOLDER / "precision.toml"),
        Entry("smoke", "core at toy size, two minutes per model; not a benchmark",
              _FOLDER / "smoke.toml"),
        Entry("papers", "the published sizes by the published recipes, for a GPU",
              _FOLDER / "papers.toml"),
    ]  # fmt: skip
