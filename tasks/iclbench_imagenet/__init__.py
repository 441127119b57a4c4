"""In-context classification of images from the features of a frozen backbone."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_imagenet"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """imagenet."""
    return [
        Entry(
            "imagenet",
            "W-way K-shot classification of images from unseen classes: emoji, Fashion-MNIST or "
            "ImageNet (Wang et al. 2025)",
            f"{_HOME}.task:ImageNet",
        )
    ]


@hookimpl
def iclbench_commands() -> list[Entry]:
    """features."""
    return [
        Entry(
            "features",
            "Extract features of images for the task imagenet.",
            f"{_HOME}.command:features",
        )
    ]
