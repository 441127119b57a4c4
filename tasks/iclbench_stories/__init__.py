"""Children's stories: language modelling, and generated and graded endings."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """stories."""
    return [
        Entry(
            "stories",
            "language modelling and story endings on tales (categorical, 3.6 and 6.3)",
            "iclbench_stories.task:Stories",
        )
    ]
