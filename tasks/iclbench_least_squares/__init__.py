"""In-context least squares and its gradient, and ridge regression."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """Least squares in its variants, its gradient, and ridge."""
    return [
        Entry(
            "least-squares",
            "linear regression from N examples (least_squares, D.2.2)",
            "iclbench_least_squares.fixed:LeastSquares",
        ),
        Entry(
            "least-squares-prefixes",
            "linear regression after every prefix of k = 0…N examples (least_squares, D.2.1)",
            "iclbench_least_squares.prefixes:LeastSquaresPrefixes",
        ),
        Entry(
            "least-squares-features",
            "the weights w* from examples with gradient-descent features (least_squares, D.2.4)",
            "iclbench_least_squares.features:LeastSquaresFeatures",
        ),
        Entry(
            "gradient",
            "the least-squares gradient at given weights, iterated (least_squares, D.2.5)",
            "iclbench_least_squares.gradient:Gradient",
        ),
        Entry(
            "gradient-steps",
            "the weights after k steps of gradient descent",
            "iclbench_least_squares.gradient_steps:GradientSteps",
        ),
        Entry(
            "ridge",
            "ridge regression with λ and a step size in the prompt (elsa, 3.1)",
            "iclbench_least_squares.ridge:RidgeRegression",
        ),
    ]
