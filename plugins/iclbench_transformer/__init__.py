"""The softmax transformer of the GPT-2 family."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide transformer."""
    return [
        Entry(
            "transformer",
            "GPT-2-style transformer: softmax attention, pre-norm, learned positions, ReLU MLP",
            "iclbench_transformer.architecture:Transformer",
            mixer="attention",
        )
    ]
