"""Looped transformers: blocks whose weights are used again and again."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide looped-transformer."""
    return [
        Entry(
            "looped-transformer",
            "one block in a loop that reads the prompt again each time (Yang et al. 2024)",
            "iclbench_looped_transformer.architecture:LoopedTransformer",
        )
    ]
