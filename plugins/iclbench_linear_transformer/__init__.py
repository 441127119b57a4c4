"""The linear transformer for linear systems."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """The linear transformer."""
    return [
        Entry(
            "linear-transformer",
            "linear attention over the rows of linear systems of any size (Vladymyrov et al. 2024)",
            "iclbench_linear_transformer.architecture:LinearTransformer",
        )
    ]


@hookimpl
def iclbench_metrics() -> list[Entry]:
    """An analysis of the algorithm that a model learned."""
    return [
        Entry(
            "krylov",
            "polynomial of A that each layer applies to the first residual, beside Chebyshev's and "
            "the best one",
            "iclbench_linear_transformer.krylov:Krylov",
        )
    ]
