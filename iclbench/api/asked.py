"""Language models that are asked in text, and the module that keeps what they answered."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .architecture import Solver
from .errors import PluginError, RecordError
from .prompts import Signature, real_dtype


class Asked(Solver):
    """A language model that is asked one question per prompt and answers in text.

    A record keeps every question with its answer. `verify` writes the questions again, takes the
    answers from the record, and asks nothing: what it proves is that the scores are those of these
    answers.
    """

    def prepare(self, config: Any) -> None:
        """Raise UsageError for what is missing; called before anything is run or asked."""

    @abstractmethod
    def questions(self, prompt: Any, signature: Signature, config: Any) -> list[str]:
        """Return the question of each prompt of a batch, which must hold all that it shows."""

    @abstractmethod
    def ask(self, questions: Sequence[str], config: Any, device: torch.device) -> Iterator[str]:
        """Yield the answer to each question, in their order; `device` is the evaluation's.

        Raises UsageError where a package, a file or a key is missing, and RunError where the model
        can't be asked.
        """

    @abstractmethod
    def read(self, answer: str, signature: Signature, config: Any) -> Sequence[float]:
        """Return the prediction in an answer, all P · W numbers.

        An answer that holds none is not an error: return what a model without examples would say.
        """

    @abstractmethod
    def identity(self, config: Any) -> str:
        """Return what answers: a name, and the digest of its file if it has one."""

    def build(self, signature: Signature, config: Any) -> AskedModule:
        """Return a module without parameters that asks when it is called."""
        return AskedModule(self, signature, config)


class AskedModule(nn.Module):
    """Maps prompts to predictions by questions and answers; it asks each question once.

    `answers` has the answer to each question, and `used` the questions of all calls in their order.
    """

    def __init__(self, asked: Asked, signature: Signature, config: Any) -> None:
        super().__init__()
        self._asked, self._signature, self._config = asked, signature, config
        self._recorded = False
        self.answers: dict[str, str] = {}
        self.used: dict[str, None] = {}

    @property
    def identity(self) -> str:
        """What answers."""
        return self._asked.identity(self._config)

    def remember(self, answers: Mapping[str, str]) -> None:
        """Take the answers of a record: from now on nothing is asked."""
        self.answers, self._recorded = dict(answers), True

    def forward(self, prompt: Any) -> Tensor:
        """The prediction (B, P, W), in the prompt's dtype, or float64 for a prompt of ids.

        Raises RecordError for a question that the answers of a record don't have, and PluginError
        for questions or answers that are not one per prompt.
        """
        asked, signature, config = self._asked, self._signature, self._config
        like, dtype = prompt[0], real_dtype(prompt)
        questions = asked.questions(prompt, signature, config)
        if len(questions) != len(like):
            raise PluginError(f"{asked.name}: {len(questions)} questions for {len(like)} prompts")
        self._ask(questions, like.device)
        self.used.update(dict.fromkeys(questions))
        numbers = [list(asked.read(self.answers[q], signature, config)) for q in questions]
        shape = (len(like), len(signature.readout), signature.output_width)
        try:
            return torch.tensor(numbers, dtype=dtype, device=like.device).view(shape)
        except (RuntimeError, ValueError):
            raise PluginError(
                f"{asked.name}: an answer is not read as {shape[1:]} numbers"
            ) from None

    def _ask(self, questions: Sequence[str], device: torch.device) -> None:
        new = [question for question in dict.fromkeys(questions) if question not in self.answers]
        if new and self._recorded:
            raise RecordError(
                "the record has no answer to one of its questions; decimals in a question may be "
                "rounded differently on another machine"
            )
        given = list(self._asked.ask(new, self._config, device)) if new else []
        if len(given) != len(new):
            raise PluginError(f"{self._asked.name}: {len(given)} answers to {len(new)} questions")
        self.answers.update(zip(new, given, strict=True))
