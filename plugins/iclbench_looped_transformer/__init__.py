"""Looped transformers: blocks whose weights are used again and again."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide looped-transformer."""
    return [
        Entry(
            "looped-transformer",
            "the same block applied repeatedly, with the prompt added in each loop (Yang et al. "
            "2024)",
            "iclbench_looped_transformer.architecture:LoopedTransformer",
        )
    ]
