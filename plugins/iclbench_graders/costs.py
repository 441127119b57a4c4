"""The cost of requests: list prices, and a ledger that never exceeds a budget."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from iclbench import UsageError

#: USD per million tokens of prompts and of answers, at OpenAI's own address (2025).
PRICES = {
    "gpt-4o": (2.5, 10.0),
    "gpt-4o-2024-08-06": (2.5, 10.0),
    "gpt-4o-2024-11-20": (2.5, 10.0),
    "gpt-4o-mini": (0.15, 0.6),
    "gpt-4.1": (2.0, 8.0),
    "gpt-4.1-mini": (0.4, 1.6),
    "gpt-4.1-nano": (0.1, 0.4),
}
#: English has more than four bytes per token; broken English has fewer.
BYTES_PER_TOKEN = 3


@dataclass(frozen=True)
class Prices:
    """USD per million tokens."""

    prompt: float
    answer: float

    def usd(self, prompt_tokens: float, answer_tokens: float) -> float:
        """The cost of these tokens in USD."""
        return (self.prompt * prompt_tokens + self.answer * answer_tokens) / 1e6


def known_prices(
    model: str, official: bool, prompt: float | None, answer: float | None
) -> Prices | None:
    """The given prices, completed by the list's if the address is official; None if unknown."""
    listed = PRICES.get(model) if official else None
    if prompt is None and listed:
        prompt = listed[0]
    if answer is None and listed:
        answer = listed[1]
    return None if prompt is None or answer is None else Prices(prompt, answer)


class Ledger:
    """The amount spent, and the most that pending requests can cost, in USD."""

    def __init__(self, prices: Prices | None) -> None:
        self.prices = prices
        self.budget: float | None = None
        self.spent = 0.0
        self._reserved = 0.0
        self._pending = 0

    def limit(self, budget: float | None) -> None:
        """Set the budget; raises UsageError if prices are unknown."""
        if budget is not None and self.prices is None:
            raise UsageError(
                "--grader-budget: the model's prices are not known; set them with --grader-args "
                "prompt_price=USD,answer_price=USD, per million tokens"
            )
        self.budget = budget

    async def reserve(self, prompt_bytes: int, answer_tokens: int) -> float:
        """Reserve the most that a request can cost, one token per byte; return the amount.

        Waits for pending requests. Raises UsageError if the rest of the budget is smaller.
        """
        most = self.prices.usd(prompt_bytes, answer_tokens) if self.prices else 0.0
        while self.budget is not None and self.spent + self._reserved + most > self.budget:
            if self._pending:
                await asyncio.sleep(0.02)
                continue
            raise UsageError(
                f"--grader-budget: {self.spent:.4f} USD of {self.budget:g} are spent, and the next "
                "request might exceed it; answers so far are stored, so a run with a larger "
                "budget continues from them"
            )
        self._reserved += most
        self._pending += 1
        return most

    def settle(self, reserved: float, prompt_tokens: float, answer_tokens: float) -> None:
        """Replace a request's reservation by its actual cost."""
        self._pending -= 1
        self._reserved = self._reserved - reserved if self._pending else 0.0
        if self.prices is not None:
            self.spent += self.prices.usd(prompt_tokens, answer_tokens)
