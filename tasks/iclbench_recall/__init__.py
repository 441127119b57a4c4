"""Recall in context: MQAR (Arora et al. 2023) and the six tasks of MAD (Poli et al. 2024)."""

from iclbench import Entry, hookimpl

_HOME = "iclbench_recall"


@hookimpl
def iclbench_tasks() -> list[Entry]:
    """mqar, mqar-continuous, and MAD's six."""
    return [
        Entry("mqar", "multi-query associative recall: the value of each repeated key (Arora et "
              "al. 2023)",
              f"{_HOME}.mqar:MQAR"),
        Entry("mqar-continuous", "multi-query associative recall with vectors as keys and values "
              "(Arora et al. 2023)",
              f"{_HOME}.continuous:ContinuousMQAR"),
        Entry("in-context-recall", "associative recall: the value of each repeated key (Poli et "
              "al. 2024)",
              f"{_HOME}.recall:InContextRecall"),
        Entry("noisy-recall", "associative recall with noise tokens between the pairs (Poli et al. "
              "2024)",
              f"{_HOME}.recall:NoisyRecall"),
        Entry("fuzzy-recall", "recall of keys and values of one to three tokens (Poli et al. 2024)",
              f"{_HOME}.fuzzy:FuzzyRecall"),
        Entry("selective-copying", "copy the tokens among blanks, in order (Poli et al. 2024)",
              f"{_HOME}.copying:SelectiveCopying"),
        Entry("compression", "decode all tokens of a sequence from the model's last state (Poli et "
              "al. 2024)",
              f"{_HOME}.compression:Compression"),
        Entry("memorization", "recall of a fixed key–value map learned in training (Poli et al. "
              "2024)",
              f"{_HOME}.memorization:Memorization"),
    ]  # fmt: skip


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Solvers that read the prompt's ids."""
    return [
        Entry("lookup", "copies the token that followed the same context earlier",
              f"{_HOME}.solvers:Lookup"),
        Entry("context-guess", "guesses among the values in the context, with equal probability",
              f"{_HOME}.solvers:ContextGuess"),
        Entry("copy-unblanked", "exact solver of selective-copying",
              f"{_HOME}.solvers:CopyUnblanked"),
    ]  # fmt: skip
