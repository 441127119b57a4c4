"""In-context least squares: at a fixed number of examples, and on every prefix."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """least-squares and least-squares-prefixes."""
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
    ]
