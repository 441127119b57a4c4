"""The model `language-model`: regression prompts as text, and the numbers in what it answers."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any, ClassVar

import torch
from pydantic import Field

from iclbench import (
    Asked,
    Config,
    LocalLanguageModel,
    Signature,
    report,
)

from .answers import AnswerFile

#: The fields of a prompt that a question shows.
FIELDS = ("x", "y", "query")
#: Seconds between two lines of progress.
SECONDS = 15.0

_NUMBER = re.compile(r"[-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


class LanguageModelConfig(Config):
    """Arguments of `language-model`."""

    path: str | None = Field(
        None,
        description="GGUF file of a causal language model; null: SmolLM2-135M-Instruct, Q4_1",
    )
    decimals: int = Field(
        2, ge=0, le=8, description="number of decimals of the numbers in the text prompt"
    )
    most_tokens: int = Field(16, ge=1, le=256, description="maximum number of tokens in an answer")


class LanguageModel(Asked):
    """A causal language model continues a list of inputs and outputs, greedily.

    A question has a line for each input and each output, with a blank line after each example, and
    ends where the query's output is missing (as in Vacareanu et al. 2024, arXiv:2404.07544). The
    prediction is the first numbers of the answer's first line; 0 where a number is missing.
    """

    name = "language-model"
    Config: ClassVar[type[Config]] = LanguageModelConfig

    def supports(self, signature: Signature, config: Any) -> str | None:
        """It needs prompts of x, y and one query and nothing else, and answers at the query."""
        fields = set(getattr(signature.prompt, "_fields", ()))
        if signature.target != "query":
            return f"it answers query, not {signature.target}"
        if len(signature.readout) != 1 or signature.varies:
            return "it answers one query, in prompts of one size"
        if missing := set(FIELDS) - fields:
            return f"it needs {', '.join(sorted(missing))}, which the task's prompts lack"
        if unseen := fields - {*FIELDS, "tokens"}:
            return f"it would ignore {', '.join(sorted(unseen))} in the task's prompts"
        return None

    def prepare(self, config: Any) -> None:
        """Raises UsageError where packages or the model's file are missing."""
        self._local(config).require()

    def questions(self, prompt: Any, signature: Signature, config: Any) -> list[str]:
        """The examples and the query as text."""
        return [
            _question(x, y, query[0], config.decimals)
            for x, y, query in zip(
                prompt.x.tolist(), prompt.y.tolist(), prompt.query.tolist(), strict=True
            )
        ]

    def ask(self, questions: Sequence[str], config: Any, device: torch.device) -> Iterator[str]:
        """Continue each question; stored answers of earlier runs are reused.

        Raises UsageError where packages or the model's file are missing.
        """
        model = self._local(config, device)
        stored = AnswerFile(f"{self.identity(config)}, {config.most_tokens} tokens, {device.type}")
        last_report = time.monotonic()
        for number, question in enumerate(questions, start=1):
            answer = stored.get(question)
            if answer is None:
                answer = model.complete(question, config.most_tokens)
                stored.put(question, answer)
            yield answer
            if time.monotonic() - last_report > SECONDS:
                last_report = time.monotonic()
                report(f"{self.name}: {number:,} of {len(questions):,} answers")

    def read(self, answer: str, signature: Signature, config: Any) -> list[float]:
        """The first numbers of the first line; 0 for those that are missing or not finite."""
        width = len(signature.readout) * signature.output_width
        line = answer.strip().partition("\n")[0]
        numbers = [float(text.replace("−", "-")) for text in _NUMBER.findall(line)[:width]]
        finite = [value if math.isfinite(value) else 0.0 for value in numbers]
        return finite + [0.0] * (width - len(finite))

    def identity(self, config: Any) -> str:
        """The file's name with the start of its SHA-256, and what reads it."""
        try:
            reader = f"transformers {metadata.version('transformers')}"
        except metadata.PackageNotFoundError:
            reader = "no transformers"  # it can only reuse stored answers
        return f"{self._local(config).identity}, greedy, {reader}"

    def _local(self, config: Any, device: torch.device | None = None) -> LocalLanguageModel:
        return LocalLanguageModel(config.path, f"model {self.name}", device)


def _question(x: list[list[float]], y: list[list[float]], query: list[float], decimals: int) -> str:
    examples = [
        f"Input: {_numbers(a, decimals)}\nOutput: {_numbers(b, decimals)}\n\n"
        for a, b in zip(x, y, strict=True)
    ]
    return f"{''.join(examples)}Input: {_numbers(query, decimals)}\nOutput:"


def _numbers(values: list[float], decimals: int) -> str:
    # Adding 0 turns a rounded −0 into 0.
    return ", ".join(f"{round(value, decimals) + 0.0:.{decimals}f}" for value in values)
