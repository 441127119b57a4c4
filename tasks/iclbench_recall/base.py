"""What the tasks of this package share: chance, and draws that no prompt shows."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, TypeVar

import torch
from torch import Tensor

from iclbench import Batch, PooledConfig, Random, Text, TokenTask

ConfigT = TypeVar("ConfigT", bound=PooledConfig)


class RecallTask(TokenTask[ConfigT]):
    """Ids or vectors, and the ids that are asked at some positions."""

    # Choices and orders: none of the draws is shown as it is.
    unrounded = frozenset({"order", "slots", "probe", "noisy"})

    @property
    @abstractmethod
    def answers(self) -> int:
        """The number of ids that an answer can be, all with the same probability."""

    def chance(self, batch: Batch) -> dict[str, Tensor]:
        """Guessing among all answers: accuracy 1/A and nll log A."""
        guess = torch.full((len(batch.target),), 1.0 / self.answers, dtype=torch.float64)
        return {"accuracy": guess, "nll": torch.full_like(guess, math.log(self.answers))}


def distinct(random: Random, name: str, stop: int, count: int) -> Tensor:
    """`count` different integers below `stop`, (rows, count): every ordered choice is as likely.

    The i-th number is drawn from the stop − i integers that are left.
    """
    parts = [random.integers(f"{name} {i}", stop - i) for i in range(count)]
    chosen: list[Tensor] = []
    taken = parts[0].new_empty(len(parts[0]), 0)
    for i, rank in enumerate(parts):
        # Of the sorted taken numbers, the j-th (from 0) precedes the answer if it is ≤ rank + j.
        below = taken - torch.arange(i, device=taken.device) <= rank.unsqueeze(1)
        number = rank + below.sum(dim=1)
        chosen.append(number)
        taken = torch.cat([taken, number.unsqueeze(1)], dim=1).sort(dim=1).values
    return torch.stack(chosen, dim=1)


def text_signature_fields(length: int, vocabulary: int) -> dict[str, Any]:
    """The fields of a signature that all prompts of ids share."""
    return {
        "prompt": Text,
        "target": "token",
        "length": length,
        "input_width": 0,
        "output_width": vocabulary,
        "vocabulary": vocabulary,
    }
