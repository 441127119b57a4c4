"""In-context learning of function classes (Garg et al. 2022)."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_function_classes"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """Provide the function classes."""
    return [
        Entry("sparse-linear", "linear functions with s non-zero weights, after every prefix",
              f"{_HOME}.sparse:SparseLinear"),
        Entry("quadratic", "quadratic functions Σ wᵢxᵢ²/√3, after every prefix",
              f"{_HOME}.quadratic:Quadratic"),
        Entry("relu-network", "two-layer ReLU networks, after every prefix",
              f"{_HOME}.network:ReluNetwork"),
        Entry("decision-tree", "decision trees on the signs of inputs, after every prefix",
              f"{_HOME}.tree:DecisionTree"),
        Entry("linear-classification", "the sign of a linear function, after every prefix",
              f"{_HOME}.classification:LinearClassification"),
    ]  # fmt: skip
