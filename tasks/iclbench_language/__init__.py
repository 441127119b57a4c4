"""In-context language learning: random finite automata (RegBench), and n-gram controls."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """Provide regbench."""
    return [
        Entry(
            "regbench",
            "the next symbol of words of a random finite automaton (Akyürek et al. 2024)",
            "iclbench_language.task:RegBench",
        )
    ]


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide n-gram."""
    return [
        Entry(
            "n-gram",
            "n-grams of the words so far, backing off to shorter ones",
            "iclbench_language.ngram:NGram",
        )
    ]
