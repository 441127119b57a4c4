"""The GD transformer for categorical data, and functional gradient descent itself."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """The GD transformer, its causal variant for text, and functional gradient descent."""
    return [
        Entry(
            "gd-transformer",
            "self- and cross-attention that implement functional gradient descent (categorical, 3)",
            "iclbench_gd_transformer.architecture:GDTransformer",
        ),
        Entry(
            "gd-transformer-causal",
            "gd-transformer for text: one pass predicts after every prefix",
            "iclbench_gd_transformer.architecture:CausalGDTransformer",
        ),
        Entry(
            "functional-gd",
            "functional gradient descent per context with given embeddings (categorical, 2–3)",
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
            "distance of the learned W_Q, W_K, W_V, P from those of gradient descent",
            "iclbench_gd_transformer.matrices:AttentionMatrices",
        ),
    ]
