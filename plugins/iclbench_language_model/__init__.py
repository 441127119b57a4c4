"""A language model on this machine, which is prompted in text."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide language-model."""
    return [
        Entry(
            "language-model",
            "a pretrained language model, prompted in text (extra `local-grader`)",
            "iclbench_language_model.model:LanguageModel",
        )
    ]
