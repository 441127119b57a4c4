"""The grader `openai`: a language model behind an API that is compatible with OpenAI's."""

from __future__ import annotations

import ipaddress
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
from .costs import BYTES_PER_TOKEN, Ledger, known_prices
from .progress import Progress
from .redaction import Redaction

KEY, OWN_ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
OFFICIAL_ADDRESS = "https://api.openai.com/v1"


class OpenAIConfig(Config):
    """Arguments of `openai`. The key is read from the environment only."""

    model: str = Field("gpt-4o", min_length=1, description="the model that grades")
    base_url: str = Field(OFFICIAL_ADDRESS, description="address of the API")
    temperature: float | None = Field(
        0.0, ge=0, le=2, description="sampling temperature; null: not sent, for models without it"
    )
    seed: int | None = Field(
        0, description="sampling seed, if the server supports one; null: not sent"
    )
    max_tokens: int = Field(100, ge=16, description="maximum number of tokens in an answer")
    concurrency: int = Field(8, ge=1, le=256, description="maximum number of concurrent requests")
    timeout: float = Field(60.0, gt=0, description="seconds to wait for an answer")
    attempts: int = Field(6, ge=1, description="maximum number of failed requests per ending")
    answers: int = Field(3, ge=1, description="maximum number of unusable answers per ending")
    backoff: float = Field(
        1.0, gt=0, description="seconds before the first retry; doubled for each further one"
    )
    most_failures: float = Field(
        0.1, ge=0, le=1, description="share of endings that may fail; above it, the run stops"
    )
    retry_failed: bool = Field(False, description="ask again if a stored answer is unusable")
    prompt_price: float | None = Field(
        None, ge=0, description="price of prompts, in USD per million tokens; null: the list price"
    )
    answer_price: float | None = Field(
        None, ge=0, description="price of answers, in USD per million tokens; null: the list price"
    )

    @field_validator("base_url")
    @classmethod
    def _has_no_secret(cls, value: str) -> str:
        # A UsageError, since the message of a ValueError would show the value.
        try:
            parts = urlsplit(value)
            sound = parts.scheme in {"http", "https"} and bool(parts.hostname)
            bare = not (parts.username or parts.password or parts.query or parts.fragment)
        except ValueError:
            sound = bare = False
        if not sound:
            raise UsageError("grader openai: base_url must be like https://host/v1")
        if not bare:
            raise UsageError("grader openai: base_url is recorded, so it must not contain a secret")
        return value.rstrip("/")

    def sampling(self) -> dict[str, Any]:
        """The sampling parameters of a request."""
        given = {"temperature": self.temperature, "seed": self.seed}
        return {name: value for name, value in given.items() if value is not None}


class OpenAIGrader(Grader):
    """Grammar, consistency, plot and creativity of an ending, from 1 to 10 (Wang et al., 6.3).

    The four scales are the paper's, the prompt is not. Answers are stored under the hash of all
    that they depend on, so an interrupted run continues without paying twice.
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
        official = config.base_url == OFFICIAL_ADDRESS
        self._prices = known_prices(
            config.model, official, config.prompt_price, config.answer_price
        )
        self._ledger = Ledger(self._prices)
        self._expected = 0
        self._estimated = 0.0
        self._answers: dict[str, Answer] = {}
        self._asked: list[str] = []

    def prepare(self, completions: int, budget: float | None) -> None:
        """Raises UsageError without a key for its server, or for a budget without known prices."""
        self._key()
        self._ledger.limit(budget)
        self._expected = completions

    def _key(self) -> str:
        """The key; raises UsageError where the user has not said that this server may have it.

        Sweeps, suites and the commands of records come from others, and name an address.
        """
        address = self.config.base_url
        allowed = {OFFICIAL_ADDRESS, os.environ.get(OWN_ADDRESS, "").strip().rstrip("/")}
        if address not in allowed and not is_of_this_machine(address):
            raise UsageError(
                f"grader openai would send {KEY} to {address}; if it may have the key, set "
                f"{OWN_ADDRESS}={address}"
            )
        return api_key()

    def estimate(self, completions: Sequence[Completion]) -> float | None:
        """USD for one answer of full length per completion, at three prompt bytes per token."""
        if self._prices is None:
            return None
        fixed = len(str(prompt.response_format()))
        sizes = (
            fixed + sum(len(part["content"].encode()) for part in prompt.messages(completion))
            for completion in completions
        )
        tokens = sum(size / BYTES_PER_TOKEN for size in sizes)
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
        """`grammar`, `consistency`, `plot` and `creativity`; NaN without a usable answer."""
        stored = AnswerFolder(folder / "openai" if folder else None, Redaction(self._key()))
        keys = [self.key(completion) for completion in completions]
        missing = {}
        for key, completion in zip(keys, completions, strict=True):
            self._asked.append(key)
            if key not in self._answers:
                answer = stored.get(key)
                if answer is None or (answer.failure and self.config.retry_failed):
                    missing[key] = completion
                else:
                    self._answers[key] = answer
        if missing:
            self._ask(missing, stored, fresh=len(missing) == len(set(keys)))
        self._require_enough()
        rows = [self._scores(self._answers[key]) for key in keys]
        return {name: [row.get(name, math.nan) for row in rows] for name in prompt.NAMES}

    def _ask(self, missing: dict[str, Completion], stored: AnswerFolder, fresh: bool) -> None:
        estimate = self.estimate(list(missing.values()))
        if estimate is not None:
            # Assume the same cost per ending for later ones, unless some answers are stored.
            later = max(0, self._expected - len(self._asked)) if fresh else 0
            self._require_budget(estimate * (1 + later / len(missing)))
        self._estimated += estimate or 0.0
        shown = "at an unknown cost" if estimate is None else f"up to {estimate:.4f} USD"
        say(f"grader openai: {len(missing)} endings for {self.config.model}, {shown}")
        spent, progress = self._ledger.spent, Progress(self.name, len(missing))

        def store(key: str, answer: Answer) -> None:
            self._answers[key] = answer
            if not answer.may_pass:
                stored.put(key, answer)
            if answer.failure:
                self._require_enough()
            progress.step()

        Asker(self.config, self._key(), self._ledger).ask(missing, store)
        cost = "" if self._prices is None else f", {self._ledger.spent - spent:.4f} USD"
        say(f"grader openai: {progress.done} answers{cost}")

    def _require_enough(self) -> None:
        """Raise RunError if too many endings failed for the rest to be representative."""
        reasons = self._reasons()
        failed, expected = sum(reasons.values()), max(self._expected, len(self._asked))
        if failed > self.config.most_failures * expected:
            reason, count = reasons.most_common(1)[0]
            raise RunError(
                f"grader openai: {failed} of the run's {expected} endings could not be graded, "
                f"more than most_failures={self.config.most_failures:g} allows: {count} × "
                f"{reason}; answers so far are stored"
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
        """SHA-256 of everything that an answer depends on."""
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
        """The answer as received, with its token counts, or the reason for its absence."""
        return self._answers[self.key(completion)].model_dump(mode="json")

    def read(self, raw: dict[str, Any]) -> dict[str, float]:
        """The grades in a stored answer; {} for a failed one. Raises ValueError if invalid."""
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


def is_of_this_machine(address: str) -> bool:
    """Whether a URL's host is this machine, by its address or as `localhost`."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def api_key() -> str:
    """The key from the environment; raises UsageError, without showing it, if it is invalid."""
    key = os.environ.get(KEY, "").strip()
    if not key:
        raise UsageError(f"grader openai needs a key in the environment: {KEY}=…")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{KEY} is not a valid key: it contains spaces or unsupported characters")
    return key
