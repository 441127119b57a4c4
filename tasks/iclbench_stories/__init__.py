"""Children's stories: language modelling, and generated and graded endings."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """stories."""
    return [
        Entry(
            "stories",
            "language modeling on fairy tales, and generation of their endings (Wang et al. 2025)",
            "iclbench_stories.task:Stories",
        )
    ]
