"""Suites of boards: core, precision, smoke and papers."""

from pathlib import Path

from iclbench import Entry, hookimpl

_FOLDER = Path(__file__).parent


@hookimpl
def iclbench_suites() -> list[Entry]:
    """core, precision, smoke and papers."""
    return [
        Entry("core", "11 boards: regression, linear systems, classification, text; ten core "
              "minutes per seed",
              _FOLDER / "core.toml"),
        Entry("precision", "noiseless regression and linear systems, in float32 and float64",
              _FOLDER / "precision.toml"),
        Entry("smoke", "smoke test, not a benchmark: core at toy size, 90 core seconds per model",
              _FOLDER / "smoke.toml"),
        Entry("papers", "the published sizes with the published recipes; needs a GPU",
              _FOLDER / "papers.toml"),
    ]  # fmt: skip
