"""In-context learning of function classes (Garg et al. 2022)."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_function_classes"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """Provide the function classes."""
    return [
        Entry("sparse-linear", "regression of a linear function with s non-zero weights, after "
              "every prefix",
              f"{_HOME}.sparse:SparseLinear"),
        Entry("quadratic", "regression of a quadratic function Σ wᵢxᵢ²/√3, after every prefix",
              f"{_HOME}.quadratic:Quadratic"),
        Entry("relu-network", "regression of a two-layer ReLU network, after every prefix",
              f"{_HOME}.network:ReluNetwork"),
        Entry("decision-tree", "regression of a decision tree on the signs of inputs, after every "
              "prefix",
              f"{_HOME}.tree:DecisionTree"),
        Entry("linear-classification", "classification by the sign of a linear function, after "
              "every prefix",
              f"{_HOME}.classification:LinearClassification"),
    ]  # fmt: skip
