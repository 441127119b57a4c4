"""Classical solvers for regression, classification and linear systems, and two metrics."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_solvers"


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide the solvers."""
    return [
        Entry("least-squares-qr", "least squares by QR; minimum norm if underdetermined",
              f"{_HOME}.direct:LeastSquaresQR"),
        Entry("least-squares-cholesky", "least squares by Cholesky factorization, with iterative "
              "refinement",
              f"{_HOME}.direct:LeastSquaresCholesky"),
        Entry("ridge", "ridge regression by Cholesky", f"{_HOME}.direct:Ridge"),
        Entry("gradient-descent", "gradient descent; step size fixed or optimal per prompt",
              f"{_HOME}.iterative:GradientDescent"),
        Entry("exact-gradient", "the exact least-squares gradient at the weights in the prompt",
              f"{_HOME}.iterative:ExactGradient"),
        Entry("conjugate-gradient", "conjugate gradients for linear systems; CGLS for regression",
              f"{_HOME}.iterative:ConjugateGradient"),
        Entry("newton", "Newton–Schulz iteration for the inverse of A or XᵀX",
              f"{_HOME}.iterative:Newton"),
        Entry("cholesky", "linear systems by Cholesky factorization",
              f"{_HOME}.systems:Cholesky"),
        Entry("richardson", "linear systems by Richardson iteration with the optimal step size",
              f"{_HOME}.systems:Richardson"),
        Entry("chebyshev", "linear systems by Chebyshev iteration",
              f"{_HOME}.systems:Chebyshev"),
        Entry("jacobi", "linear systems by Jacobi iteration", f"{_HOME}.systems:Jacobi"),
        Entry("steepest-descent", "linear systems by gradient descent with exact line search",
              f"{_HOME}.systems:SteepestDescent"),
        Entry("class-frequency", "class or token frequencies in the context; ignores inputs and "
              "order",
              f"{_HOME}.classifiers:ClassFrequency"),
        Entry("nearest-class-mean", "classification by the nearest class mean",
              f"{_HOME}.classifiers:NearestClassMean"),
        Entry("nearest-neighbour-vote", "classification by a vote of the nearest examples",
              f"{_HOME}.classifiers:NearestNeighbourVote"),
        Entry("kernel-regression", "classification by Nadaraya–Watson with an RBF kernel",
              f"{_HOME}.classifiers:KernelRegression"),
        Entry("logistic-regression", "logistic regression fitted to each context",
              f"{_HOME}.classifiers:LogisticRegression"),
        Entry("linear-probe", "a linear classifier trained on each context",
              f"{_HOME}.classifiers:LinearProbe"),
        Entry("averaging", "linear regression by w = (1/N) Σ yᵢxᵢ", f"{_HOME}.simple:Averaging"),
        Entry("nearest-neighbours", "regression by the mean of the nearest examples",
              f"{_HOME}.simple:NearestNeighbours"),
        Entry("two-layer-network", "a two-layer ReLU network fitted to each context by Adam",
              f"{_HOME}.fitted:TwoLayerNetwork"),
        Entry("lasso", "linear regression with an L1 penalty (scikit-learn)",
              f"{_HOME}.sklearn_solvers:Lasso"),
        Entry("cart", "a greedy regression tree fitted to each context (scikit-learn)",
              f"{_HOME}.sklearn_solvers:Cart"),
        Entry("boosted-trees", "gradient-boosted regression trees fitted to each context "
              "(scikit-learn)",
              f"{_HOME}.sklearn_solvers:BoostedTrees"),
        Entry("zero", "predicts 0", f"{_HOME}.simple:Zero"),
        Entry("constant", "predicts a given constant", f"{_HOME}.simple:Constant"),
        Entry("uniform", "equal probability for every class or token",
              f"{_HOME}.simple:Uniform"),
    ]  # fmt: skip


@hookimpl
def iclbench_metrics() -> list[Entry]:
    """Provide alignment and iterates."""
    return [
        Entry("alignment", "the number of gradient-descent steps that matches the model best",
              f"{_HOME}.alignment:Alignment"),
        Entry("iterates", "distance of each iterate from gradient descent's",
              f"{_HOME}.iterates:Iterates"),
    ]  # fmt: skip
