"""The GD transformer for categorical data, and functional gradient descent itself."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """The GD transformer, its causal variant for text, and functional gradient descent."""
    return [
        Entry(
            "gd-transformer",
            "self- and cross-attention that implement functional gradient descent (Wang et al. "
            "2025)",
            "iclbench_gd_transformer.architecture:GDTransformer",
        ),
        Entry(
            "gd-transformer-causal",
            "gd-transformer for text: predicts after every prefix in one pass",
            "iclbench_gd_transformer.architecture:CausalGDTransformer",
        ),
        Entry(
            "functional-gd",
            "functional gradient descent on each context (Wang et al. 2025, eqs. 2–3)",
            "iclbench_gd_transformer.solver:FunctionalGD",
        ),
    ]


@hookimpl
def iclbench_metrics() -> list[Entry]:
    """Comparisons with gradient descent: of every block, and of the learned matrices."""
    return [
        Entry(
            "descent-error",
            "distance of each gd-transformer block from gradient descent in float64",
            "iclbench_gd_transformer.exactness:DescentError",
        ),
        Entry(
            "attention-matrices",
            "distance of the learned attention matrices from those of gradient descent",
            "iclbench_gd_transformer.matrices:AttentionMatrices",
        ),
    ]
