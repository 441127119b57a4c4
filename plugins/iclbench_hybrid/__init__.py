"""Stacks that alternate mixers of other models."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide hybrid."""
    return [
        Entry(
            "hybrid",
            "layers that alternate between any registered mixers, such as attention and mamba",
            "iclbench_hybrid.architecture:Hybrid",
        )
    ]
