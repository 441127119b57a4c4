"""BaseConv: gated long convolution."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """baseconv."""
    return [
        Entry(
            "baseconv",
            "gated convolution over the full length, element-wise gate (Arora et al. 2023)",
            "iclbench_baseconv.architecture:BaseConv",
        )
    ]
