"""In-context classification: classes of a softmax of a function that varies by context."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """categorical and categorical-quadrants."""
    return [
        Entry(
            "categorical",
            "classification by a random kernel function per context (Wang et al. 2025)",
            "iclbench_categorical.anchors:Anchors",
        ),
        Entry(
            "categorical-quadrants",
            "classification of points in the plane by their quadrant (Wang et al. 2025)",
            "iclbench_categorical.quadrants:Quadrants",
        ),
    ]


@hookimpl
def iclbench_metrics() -> list[Entry]:
    """calibration and probability-maps."""
    return [
        Entry(
            "calibration",
            "Brier score and expected calibration error",
            "iclbench_categorical.calibration:Calibration",
        ),
        Entry(
            "probability-maps",
            "maps of class probabilities over the plane for one context",
            "iclbench_categorical.maps:ProbabilityMaps",
        ),
    ]
