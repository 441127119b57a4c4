"""The GD transformer for categorical data, and functional gradient descent itself."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """gd-transformer, its causal variant, and functional-gd."""
    return [
        Entry(
            "gd-transformer",
            "self- and cross-attention that are functional gradient descent (categorical, 3)",
            "iclbench_gd_transformer.architecture:GDTransformer",
        ),
        Entry(
            "gd-transformer-causal",
            "the same for text, several blocks of which see all prefixes in one pass",
            "iclbench_gd_transformer.architecture:CausalGDTransformer",
        ),
        Entry(
            "functional-gd",
            "functional gradient descent on each context, embeddings given (categorical, 2–3)",
            "iclbench_gd_transformer.solver:FunctionalGD",
        ),
    ]


@hookimpl
def iclbench_metrics() -> list[Entry]:
    """descent-error and attention-matrices."""
    return [
        Entry(
            "descent-error",
            "how far each block of gd-transformer is from gradient descent in float64",
            "iclbench_gd_transformer.exactness:DescentError",
        ),
        Entry(
            "attention-matrices",
            "W_Q, W_K, W_V, P of gd-transformer's free form: are AᵀB and ED identities?",
            "iclbench_gd_transformer.matrices:AttentionMatrices",
        ),
    ]
