"""BaseConv: gated long convolutions."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide baseconv."""
    return [
        Entry(
            "baseconv",
            "gated long convolution with an element-wise gate (Arora et al. 2023; Liu et al. 2025)",
            "iclbench_baseconv.architecture:BaseConv",
        )
    ]
