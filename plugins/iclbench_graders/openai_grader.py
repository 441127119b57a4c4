"""The grader `openai`: a language model, through an API that OpenAI's client speaks to."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from iclbench import (
    Completion,
    Config,
    Grader,
    GraderReport,
    GradingCost,
    RunError,
    UsageError,
    digest_of,
)
from iclbench import report as say

from . import prompt
from .answers import Answer, AnswerFolder, total
from .asking import Asker
from .costs import BYTES_A_TOKEN, Ledger, known_prices
from .progress import Progress

KEY = "OPENAI_API_KEY"
OWN_ADDRESS = "https://api.openai.com/v1"


class OpenAIConfig(Config):
    """Arguments of `openai`. The key comes from the environment alone."""

    model: str = Field("gpt-4o", min_length=1, description="the model that grades")
    base_url: str = Field(OWN_ADDRESS, description="where the API is")
    temperature: float | None = Field(
        0.0, ge=0, le=2, description="of its sampling; null: not sent, for models without it"
    )
    seed: int | None = Field(0, description="of its sampling, as far as the server obeys")
    max_tokens: int = Field(100, ge=16, description="most tokens of an answer")
    concurrency: int = Field(8, ge=1, le=256, description="most requests at once")
    timeout: float = Field(60.0, gt=0, description="most seconds for an answer")
    attempts: int = Field(6, ge=1, description="most requests that fail, for one ending")
    answers: int = Field(3, ge=1, description="most answers that can't be used, for one ending")
    backoff: float = Field(1.0, gt=0, description="seconds before the second try; then doubled")
    most_failures: float = Field(
        0.1, ge=0, le=1, description="share of the endings that may fail before the run gives up"
    )
    retry_failed: bool = Field(False, description="ask again where kept answers were no use")
    prompt_price: float | None = Field(None, ge=0, description="USD for a million tokens")
    answer_price: float | None = Field(None, ge=0, description="USD for a million tokens")

    @field_validator("base_url")
    @classmethod
    def _has_no_secret(cls, value: str) -> str:
        # No ValueError: its message would show the value.
        try:
            parts = urlsplit(value)
            sound = parts.scheme in {"http", "https"} and bool(parts.hostname)
            bare = not (parts.username or parts.password or parts.query or parts.fragment)
        except ValueError:
            sound = bare = False
        if not sound:
            raise UsageError("grader openai: base_url must be like https://host/v1")
        if not bare:
            raise UsageError("grader openai: base_url would be recorded, so it can't hold a secret")
        return value.rstrip("/")

    def sampling(self) -> dict[str, Any]:
        """The sampling parameters that are sent."""
        given = {"temperature": self.temperature, "seed": self.seed}
        return {name: value for name, value in given.items() if value is not None}


class OpenAIGrader(Grader):
    """Grammar, consistency, plot and creativity of an ending, from 1 to 10 (categorical, 6.3).

    The four scales are the paper's, the prompt is not. An answer is asked for once: it is kept in
    the folder by all that it depends on, so that a run that was cut off goes on without paying
    again.
    """

    name = "openai"
    Config: ClassVar[type[Config]] = OpenAIConfig
    operational: ClassVar[frozenset[str]] = frozenset(
        {
            "concurrency",
            "timeout",
            "attempts",
            "answers",
            "backoff",
            "most_failures",
            "retry_failed",
            "prompt_price",
            "answer_price",
        }
    )
    paid: ClassVar[bool] = True

    def __init__(self, config: OpenAIConfig) -> None:
        super().__init__(config)
        own = config.base_url == OWN_ADDRESS
        self._prices = known_prices(config.model, own, config.prompt_price, config.answer_price)
        self._ledger = Ledger(self._prices)
        self._expected = 0
        self._estimated = 0.0
        self._answers: dict[str, Answer] = {}
        self._asked: list[str] = []

    def prepare(self, completions: int, budget: float | None) -> None:
        """Raises UsageError without a key, or with a budget for prices that are not known."""
        api_key()
        self._ledger.limit(budget)
        self._expected = completions

    def estimate(self, completions: Sequence[Completion]) -> float | None:
        """USD for one answer each of the full length, a token for three bytes of the prompt."""
        if self._prices is None:
            return None
        fixed = len(str(prompt.response_format()))
        sizes = (
            fixed + sum(len(part["content"].encode()) for part in prompt.messages(completion))
            for completion in completions
        )
        tokens = sum(size / BYTES_A_TOKEN for size in sizes)
        return self._prices.usd(tokens, len(completions) * self.config.max_tokens)

    def _require_budget(self, estimate: float | None) -> None:
        budget = self._ledger.budget
        if budget is not None and estimate is not None and self._ledger.spent + estimate > budget:
            raise UsageError(
                f"--grader-budget: grading would cost up to {self._ledger.spent + estimate:.4f} "
                f"USD, more than {budget:g}"
            )

    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """`grammar`, `consistency`, `plot` and `creativity`, NaN where no answer could be used."""
        kept = AnswerFolder(folder / "openai" if folder else None)
        keys = [self.key(completion) for completion in completions]
        todo = {}
        for key, completion in zip(keys, completions, strict=True):
            self._asked.append(key)
            if key not in self._answers:
                found = kept.get(key)
                if found is None or (found.failure and self.config.retry_failed):
                    todo[key] = completion
                else:
                    self._answers[key] = found
        if todo:
            self._ask(todo, kept, fresh=len(todo) == len(set(keys)))
        self._require_enough()
        rows = [self._scores(self._answers[key]) for key in keys]
        return {name: [row.get(name, math.nan) for row in rows] for name in prompt.NAMES}

    def _ask(self, todo: dict[str, Completion], kept: AnswerFolder, fresh: bool) -> None:
        estimate = self.estimate(list(todo.values()))
        if estimate is not None:
            # What comes later will cost about as much an ending, if none of it was kept either.
            later = max(0, self._expected - len(self._asked)) if fresh else 0
            self._require_budget(estimate * (1 + later / len(todo)))
        self._estimated += estimate or 0.0
        shown = "at a cost that is not known" if estimate is None else f"up to {estimate:.4f} USD"
        say(f"grader openai: {len(todo)} endings for {self.config.model}, {shown}")
        spent, progress = self._ledger.spent, Progress(self.name, len(todo))

        def take(key: str, answer: Answer) -> None:
            self._answers[key] = answer
            if not answer.may_pass:
                kept.put(key, answer)
            if answer.failure:
                self._require_enough()
            progress.step()

        Asker(self.config, api_key(), self._ledger).ask(todo, take)
        cost = "" if self._prices is None else f", {self._ledger.spent - spent:.4f} USD"
        say(f"grader openai: {progress.done} answers{cost}")

    def _require_enough(self) -> None:
        """Give up where so many endings failed that their grades would say little."""
        reasons = self._reasons()
        failed, expected = sum(reasons.values()), max(self._expected, len(self._asked))
        if failed > max(1.0, self.config.most_failures * expected):
            reason, often = reasons.most_common(1)[0]
            raise RunError(
                f"grader openai: {failed} of {expected} endings could not be graded, {often} × "
                f"{reason}; answers so far are kept"
            )

    def _reasons(self) -> Counter[str]:
        failures = (self._answers[key].failure for key in self._asked if key in self._answers)
        return Counter(failure for failure in failures if failure)

    def _scores(self, answer: Answer) -> dict[str, float]:
        try:
            return answer.grades()
        except ValueError:
            return {}

    def key(self, completion: Completion) -> str:
        """SHA-256 of all that an answer depends on."""
        config = self.config
        return digest_of(
            {
                "base_url": config.base_url,
                "model": config.model,
                "max_tokens": config.max_tokens,
                "sampling": config.sampling(),
                "prompt": prompt.DIGEST,
                "beginning": completion.beginning,
                "ending": completion.ending,
            }
        )

    def raw(self, completion: Completion) -> dict[str, Any]:
        """The answer as it came, with its tokens, or why there is none."""
        return self._answers[self.key(completion)].model_dump(mode="json")

    def read(self, raw: dict[str, Any]) -> dict[str, float]:
        """The grades in an answer; raises ValueError for something else."""
        return self._scores(Answer.model_validate(raw))

    def report(self) -> GraderReport:
        """The models that answered, the prompt's hash, failures by reason, and the cost."""
        answers = {key: self._answers[key] for key in self._asked if key in self._answers}
        models = sorted({answer.model for answer in answers.values() if answer.model})
        sums = total(iter(answers.values()))
        prices = self._prices
        usd = prices.usd(sums["prompt_tokens"], sums["answer_tokens"]) if prices else None
        return GraderReport(
            name=self.name,
            model=", ".join(models) or self.config.model,
            prompt=prompt.DIGEST,
            reasons=dict(self._reasons()),
            cost=GradingCost(
                **sums,
                usd=usd,
                paid_usd=self._ledger.spent if prices else None,
                estimated_usd=self._estimated if prices else None,
            ),
        )


def api_key() -> str:
    """The key from the environment; raises UsageError, without showing it, where it is none."""
    key = os.environ.get(KEY, "").strip()
    if not key:
        raise UsageError(f"grader openai needs a key in the environment: {KEY}=…")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{KEY} is no key: it holds spaces or characters that can't be sent")
    return key
