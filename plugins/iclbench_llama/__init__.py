"""Transformers of the Llama family."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide llama."""
    return [
        Entry(
            "llama",
            "transformer with RMSNorm, rotary positions and SwiGLU (Touvron et al. 2023)",
            "iclbench_llama.architecture:Llama",
        )
    ]
