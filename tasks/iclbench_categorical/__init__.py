"""In-context classification: categories of a softmax of a function that varies by context."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """categorical and categorical-quadrants."""
    return [
        Entry(
            "categorical",
            "categories from kernels around anchors, a new function per context (categorical, E)",
            "iclbench_categorical.anchors:Anchors",
        ),
        Entry(
            "categorical-quadrants",
            "a category for each quadrant of the plane (categorical, F)",
            "iclbench_categorical.quadrants:Quadrants",
        ),
    ]


@hookimpl
def iclbench_metrics() -> list[Entry]:
    """calibration and probability-maps."""
    return [
        Entry(
            "calibration",
            "difference between the confidence and the accuracy of predicted classes",
            "iclbench_categorical.calibration:Calibration",
        ),
        Entry(
            "probability-maps",
            "p(y = c | x) over the plane for one context, with the truth (categorical, F)",
            "iclbench_categorical.maps:ProbabilityMaps",
        ),
    ]
