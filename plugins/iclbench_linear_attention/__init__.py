"""LSA, its extension ELSA with bias matrices, and exact constructions of both."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_linear_attention"


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide lsa and elsa on input matrices and on tokens, and the elimination network."""
    return [
        Entry("lsa", "linear self-attention on the paper's input matrices (Hagiwara 2025, eq. 8)",
              f"{_HOME}.architecture:LinearSelfAttention"),
        Entry("elsa", "linear self-attention with bias matrices (Hagiwara 2025, eq. 16)",
              f"{_HOME}.architecture:ExtendedLinearSelfAttention"),
        Entry("lsa-tokens", "linear self-attention over tokens (Hagiwara 2025, eq. 8)",
              f"{_HOME}.tokens:LSATokens"),
        Entry("elsa-tokens", "linear self-attention over tokens, with a bias per position "
              "(Hagiwara 2025, eq. 16)",
              f"{_HOME}.tokens:ELSATokens"),
        Entry("gaussian-elimination-network", "Gaussian elimination by ReLU networks (Hagiwara "
              "2025, Appendix A)",
              f"{_HOME}.elimination:GaussianEliminationNetwork"),
    ]  # fmt: skip


@hookimpl
def iclbench_recipes() -> list[Entry]:
    """Provide the recipe linear-attention."""
    return [
        Entry(
            "linear-attention",
            "for linear-attention models: about half a minute per model on two cores",
            f"{_HOME}.recipes:LINEAR_ATTENTION",
        )
    ]
