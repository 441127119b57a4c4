"""In-context least squares and its gradient, and ridge regression."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """Least squares in its variants, its gradient, and ridge."""
    return [
        Entry(
            "least-squares",
            "linear regression from N examples (Liu et al. 2025)",
            "iclbench_least_squares.fixed:LeastSquares",
        ),
        Entry(
            "least-squares-prefixes",
            "linear regression after every prefix of k = 0…N examples (Liu et al. 2025)",
            "iclbench_least_squares.prefixes:LeastSquaresPrefixes",
        ),
        Entry(
            "least-squares-features",
            "the regression weights w* from examples with gradient-descent features (Liu et al. "
            "2025)",
            "iclbench_least_squares.features:LeastSquaresFeatures",
        ),
        Entry(
            "gradient",
            "the gradient of least squares; evaluation takes gradient steps with it (Liu et al. "
            "2025)",
            "iclbench_least_squares.gradient:Gradient",
        ),
        Entry(
            "gradient-steps",
            "the weights after k steps of gradient descent on least squares",
            "iclbench_least_squares.gradient_steps:GradientSteps",
        ),
        Entry(
            "ridge",
            "ridge regression with λ and a step size in the prompt (Hagiwara 2025)",
            "iclbench_least_squares.ridge:RidgeRegression",
        ),
    ]
