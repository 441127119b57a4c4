"""Recall in context: multi-query associative recall (zoology) and the six tasks of MAD."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_recall"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """mqar, mqar-continuous, and MAD's six."""
    return [
        Entry("mqar", "values of the keys that are asked, from pairs of ids (zoology)",
              f"{_HOME}.mqar:MQAR"),
        Entry("mqar-continuous", "mqar with vectors as keys and values (zoology)",
              f"{_HOME}.continuous:ContinuousMQAR"),
        Entry("in-context-recall", "values of repeated keys (MAD)",
              f"{_HOME}.recall:InContextRecall"),
        Entry("noisy-recall", "values of repeated keys among noise (MAD)",
              f"{_HOME}.recall:NoisyRecall"),
        Entry("fuzzy-recall", "values of repeated keys of one to three ids (MAD)",
              f"{_HOME}.fuzzy:FuzzyRecall"),
        Entry("selective-copying", "the ids among blanks, in order (MAD)",
              f"{_HOME}.copying:SelectiveCopying"),
        Entry("compression", "every id of a sequence from its last state (MAD)",
              f"{_HOME}.compression:Compression"),
        Entry("memorization", "values of a fixed map that no prompt shows (MAD)",
              f"{_HOME}.memorization:Memorization"),
    ]  # fmt: skip


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Solvers that read the prompt's ids."""
    return [
        Entry("lookup", "the id that followed the same ids before", f"{_HOME}.solvers:Lookup"),
        Entry("context-guess", "any value of the context with equal probability (mqar)",
              f"{_HOME}.solvers:ContextGuess"),
        Entry("copy-unblanked", "the ids that are not blank, in order (selective-copying)",
              f"{_HOME}.solvers:CopyUnblanked"),
    ]  # fmt: skip
