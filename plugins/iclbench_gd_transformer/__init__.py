"""The GD transformer for categorical data, and functional gradient descent itself."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """gd-transformer and functional-gd."""
    return [
        Entry(
            "gd-transformer",
            "self- and cross-attention that are functional gradient descent (categorical, 3)",
            "iclbench_gd_transformer.architecture:GDTransformer",
        ),
        Entry(
            "functional-gd",
            "functional gradient descent on each context, embeddings given (categorical, 2–3)",
            "iclbench_gd_transformer.solver:FunctionalGD",
        ),
    ]
