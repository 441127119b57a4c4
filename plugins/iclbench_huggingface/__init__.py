"""Causal models of the library transformers, as backbones on any prompt."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide huggingface."""
    return [
        Entry(
            "huggingface",
            "any causal model of Hugging Face transformers, by its config (extra `huggingface`)",
            "iclbench_huggingface.architecture:HuggingFace",
        )
    ]
