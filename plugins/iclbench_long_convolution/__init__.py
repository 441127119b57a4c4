"""Models with long convolutions: Hyena and H3."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide hyena and h3."""
    return [
        Entry(
            "hyena",
            "gated long convolutions with implicit filters (Poli et al. 2023)",
            "iclbench_long_convolution.architecture:Hyena",
        ),
        Entry(
            "h3",
            "shift and diagonal state space models with multiplicative gates (Fu et al. 2023)",
            "iclbench_long_convolution.architecture:H3",
        ),
    ]
