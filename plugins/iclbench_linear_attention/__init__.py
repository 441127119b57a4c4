"""LSA, its extension ELSA with bias matrices, and exact constructions of both."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_linear_attention"


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide lsa and elsa on input matrices and on tokens, and the elimination network."""
    return [
        Entry("lsa", "linear self-attention on the paper's input matrices (elsa, eq. 8)",
              f"{_HOME}.architecture:LinearSelfAttention"),
        Entry("elsa", "linear self-attention with bias matrices (elsa, eq. 16)",
              f"{_HOME}.architecture:ExtendedLinearSelfAttention"),
        Entry("lsa-tokens", "linear self-attention in the harness's sequence model (elsa, eq. 8)",
              f"{_HOME}.tokens:LSATokens"),
        Entry("elsa-tokens", "lsa-tokens with bias matrices over positions (elsa, eq. 16)",
              f"{_HOME}.tokens:ELSATokens"),
        Entry("gaussian-elimination-network", "Gaussian elimination by ReLU networks (elsa, A)",
              f"{_HOME}.elimination:GaussianEliminationNetwork"),
    ]  # fmt: skip


@hookimpl
def iclbench_recipes() -> list[Entry]:
    """Provide the recipe linear-attention."""
    return [
        Entry(
            "linear-attention",
            "about half a minute per linear-attention model on two cores",
            f"{_HOME}.recipes:LINEAR_ATTENTION",
        )
    ]
