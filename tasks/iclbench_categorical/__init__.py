"""In-context classification: categories of a softmax of a function that each context has."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """categorical and categorical-quadrants."""
    return [
        Entry(
            "categorical",
            "categories from kernels around anchors, another function a context (categorical, E)",
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
            "how far the confidence of predicted classes is from their accuracy",
            "iclbench_categorical.calibration:Calibration",
        ),
        Entry(
            "probability-maps",
            "p(y = c | x) over the plane for one context, beside the truth (categorical, F)",
            "iclbench_categorical.maps:ProbabilityMaps",
        ),
    ]
