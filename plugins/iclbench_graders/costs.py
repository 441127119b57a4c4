"""What asking costs: list prices, an estimate before, and a ledger that never exceeds a budget."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from iclbench import UsageError

#: USD for a million tokens of prompts and of answers, of the API at its own address (2025).
PRICES = {
    "gpt-4o": (2.5, 10.0),
    "gpt-4o-2024-08-06": (2.5, 10.0),
    "gpt-4o-2024-11-20": (2.5, 10.0),
    "gpt-4o-mini": (0.15, 0.6),
    "gpt-4.1": (2.0, 8.0),
    "gpt-4.1-mini": (0.4, 1.6),
    "gpt-4.1-nano": (0.1, 0.4),
}
#: English has more than four bytes a token; broken English has fewer.
BYTES_A_TOKEN = 3


@dataclass(frozen=True)
class Prices:
    """USD for a million tokens."""

    prompt: float
    answer: float

    def usd(self, prompt_tokens: float, answer_tokens: float) -> float:
        """What so many tokens cost."""
        return (self.prompt * prompt_tokens + self.answer * answer_tokens) / 1e6


def known_prices(
    model: str, own_address: bool, prompt: float | None, answer: float | None
) -> Prices | None:
    """The prices that are given, or else the list's; None where neither says."""
    listed = PRICES.get(model) if own_address else None
    if prompt is None and listed:
        prompt = listed[0]
    if answer is None and listed:
        answer = listed[1]
    return None if prompt is None or answer is None else Prices(prompt, answer)


class Ledger:
    """What was spent, and what the requests that are under way may cost."""

    def __init__(self, prices: Prices | None) -> None:
        self.prices = prices
        self.budget: float | None = None
        self.spent = 0.0
        self._reserved = 0.0
        self._under_way = 0

    def limit(self, budget: float | None) -> None:
        """Set the budget; raises UsageError where nothing is known that could hold it."""
        if budget is not None and self.prices is None:
            raise UsageError(
                "--grader-budget: the model's prices are not known; give them by --grader-args "
                "prompt_price=USD,answer_price=USD, for a million tokens"
            )
        self.budget = budget

    async def reserve(self, prompt_bytes: int, answer_tokens: int) -> float:
        """Set aside the most that a request can cost, a token a byte; its amount.

        Waits for requests that are under way. Raises UsageError where the budget has less left.
        """
        most = self.prices.usd(prompt_bytes, answer_tokens) if self.prices else 0.0
        while self.budget is not None and self.spent + self._reserved + most > self.budget:
            if self._under_way:
                await asyncio.sleep(0.02)
                continue
            raise UsageError(
                f"--grader-budget: {self.spent:.4f} USD of {self.budget:g} are spent, and the next "
                "request might exceed it; answers so far are kept, so a larger one goes on from "
                "there"
            )
        self._reserved += most
        self._under_way += 1
        return most

    def settle(self, reserved: float, prompt_tokens: float, answer_tokens: float) -> None:
        """Book what a request that was reserved for came to."""
        self._under_way -= 1
        self._reserved = self._reserved - reserved if self._under_way else 0.0
        if self.prices is not None:
            self.spent += self.prices.usd(prompt_tokens, answer_tokens)
