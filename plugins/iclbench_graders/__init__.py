"""Graders of generated text: a language model through its API, and two that run offline."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_graders"


@hookimpl
def iclbench_graders() -> list[Entry]:
    """Provide openai, pmi and text-statistics."""
    return [
        Entry("openai", "grammar, consistency, plot and creativity, from 1 to 10, by GPT-4o or "
              "another model",
              f"{_HOME}.openai_grader:OpenAIGrader"),
        Entry("pmi", "mutual information of a story's beginning and ending, by SmolLM2-135M on "
              "this machine",
              f"{_HOME}.pmi:PMI"),
        Entry("text-statistics", "repetition and share of distinct n-grams; not a measure of "
              "quality",
              f"{_HOME}.text_statistics:TextStatistics"),
    ]  # fmt: skip
