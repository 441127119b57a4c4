"""Graders of what a model writes: a language model through its API, and two without a network."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_graders"


@hookimpl
def iclbench_graders() -> list[Entry]:
    """openai, pmi and text-statistics."""
    return [
        Entry("openai", "grammar, consistency, plot and creativity out of 10, by GPT-4o or another",
              f"{_HOME}.openai_grader:OpenAIGrader"),
        Entry("pmi", "how much a beginning tells of its ending, by SmolLM2-135M on this machine",
              f"{_HOME}.pmi:PMI"),
        Entry("text-statistics", "no judgement: repetition and distinct n-grams of an ending",
              f"{_HOME}.text_statistics:TextStatistics"),
    ]  # fmt: skip
