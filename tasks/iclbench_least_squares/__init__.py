"""In-context least squares, at a fixed number of examples and on every prefix, and ridge."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """least-squares, least-squares-prefixes and ridge."""
    return [
        Entry(
            "least-squares",
            "linear regression in context from N examples (least_squares, D.2.2)",
            "iclbench_least_squares.fixed:LeastSquares",
        ),
        Entry(
            "least-squares-prefixes",
            "the same on every prefix of the examples, k = 0…N (least_squares, D.2.1)",
            "iclbench_least_squares.prefixes:LeastSquaresPrefixes",
        ),
        Entry(
            "ridge",
            "ridge regression in context, with λ and a step size in the prompt (elsa, 3.1)",
            "iclbench_least_squares.ridge:RidgeRegression",
        ),
    ]
