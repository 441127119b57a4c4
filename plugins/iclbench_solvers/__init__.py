"""Classical solvers of regression and linear systems: floors and baselines of leaderboards."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_solvers"


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """The solvers."""
    return [
        Entry("least-squares-qr", "least squares by QR, minimum norm if underdetermined",
              f"{_HOME}.direct:LeastSquaresQR"),
        Entry("ridge", "ridge regression by Cholesky", f"{_HOME}.direct:Ridge"),
        Entry("gradient-descent", "gradient descent from 0, step fixed or optimal for each prompt",
              f"{_HOME}.iterative:GradientDescent"),
        Entry("exact-gradient", "the gradient of least squares at the prompt's weights",
              f"{_HOME}.iterative:ExactGradient"),
        Entry("conjugate-gradient", "conjugate gradients on a system or on normal equations (CGLS)",
              f"{_HOME}.iterative:ConjugateGradient"),
        Entry("newton", "Newton–Schulz iteration for the inverse of A or XᵀX",
              f"{_HOME}.iterative:Newton"),
        Entry("cholesky", "linear systems by Cholesky's factorization",
              f"{_HOME}.systems:Cholesky"),
        Entry("richardson", "linear systems by Richardson's iteration with the optimal step",
              f"{_HOME}.systems:Richardson"),
        Entry("chebyshev", "linear systems by the Chebyshev iteration",
              f"{_HOME}.systems:Chebyshev"),
        Entry("jacobi", "linear systems by Jacobi's iteration", f"{_HOME}.systems:Jacobi"),
        Entry("steepest-descent", "linear systems by gradient descent with exact line search",
              f"{_HOME}.systems:SteepestDescent"),
        Entry("class-frequency", "categories as often as in the context",
              f"{_HOME}.classifiers:ClassFrequency"),
        Entry("nearest-class-mean", "categories by the nearest mean of a class's inputs",
              f"{_HOME}.classifiers:NearestClassMean"),
        Entry("nearest-neighbour-vote", "categories by a vote of the nearest examples",
              f"{_HOME}.classifiers:NearestNeighbourVote"),
        Entry("kernel-regression", "categories by Nadaraya–Watson with an RBF kernel",
              f"{_HOME}.classifiers:KernelRegression"),
        Entry("logistic-regression", "categories by logistic regression on each context",
              f"{_HOME}.classifiers:LogisticRegression"),
        Entry("linear-probe", "categories by a linear layer trained on each context",
              f"{_HOME}.classifiers:LinearProbe"),
        Entry("averaging", "w = (1/N) Σ yᵢxᵢ", f"{_HOME}.simple:Averaging"),
        Entry("nearest-neighbours", "the mean y of the nearest examples",
              f"{_HOME}.simple:NearestNeighbours"),
        Entry("zero", "predicts 0", f"{_HOME}.simple:Zero"),
    ]  # fmt: skip


@hookimpl
def iclbench_metrics() -> list[Entry]:
    """alignment and iterates."""
    return [
        Entry("alignment", "how near a model is to k steps of gradient descent, and the best k",
              f"{_HOME}.alignment:Alignment"),
        Entry("iterates", "how far each iterate is from gradient descent's",
              f"{_HOME}.alignment:Iterates"),
    ]  # fmt: skip
