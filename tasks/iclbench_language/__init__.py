"""In-context language learning: random finite automata (RegBench), and n-gram controls."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """Provide regbench."""
    return [
        Entry(
            "regbench",
            "predict the next symbol of words from a random finite automaton (Akyürek et al. 2024)",
            "iclbench_language.task:RegBench",
        )
    ]


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide n-gram."""
    return [
        Entry(
            "n-gram",
            "n-gram model of the prompt so far, with back-off to shorter n-grams",
            "iclbench_language.ngram:NGram",
        )
    ]
