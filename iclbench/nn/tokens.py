"""TokenTask: tasks that ask for ids or classes at some of a prompt's positions."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor

from ..api.evaluation import EvaluationContext, Model
from ..api.floor import FloorKind
from ..api.pool import PooledConfig, PooledTask
from ..api.prompts import UNASKED, Batch, Text, map_tensors, to_device
from ..api.rightness import rightness
from ..api.scoring import Primary
from .logits import FactoredLogits, logits_at, token_loss

#: Logits that an evaluation holds at once.
AT_ONCE = 2**24

ConfigT = TypeVar("ConfigT", bound=PooledConfig)


class TokenTask(PooledTask[ConfigT]):
    """A task of target `token` or `class` that asks at positions which may differ by prompt.

    `arrange` gives what training asks for: ids (B, P), `UNASKED` where it asks for nothing. If
    evaluation asks at fewer read-outs, `truth` holds them as `asked` (B, P). The metrics are the
    accuracy and the cross-entropy at these; models are ranked by the accuracy, in which the
    likeliest ids share a tie. The best accuracy is 1: the answers follow from the prompt, or from
    what training shows of the task.
    """

    errors = {}
    fractions = frozenset({"accuracy"})
    floor_summary = "Accuracy 1: the prompt, or the task's own map, determines every answer."

    @property
    def primary(self) -> Primary:
        """The accuracy at the asked positions."""
        return Primary("accuracy", "higher")

    @property
    def floor_kind(self) -> FloorKind:
        """`bayes`: the best predictor makes no error."""
        return "bayes"

    @property
    def most_asked(self) -> int:
        """The largest number of read-outs at which a training prompt asks; others cost nothing."""
        return len(self.signature.readout)

    def answer(self, batch: Batch) -> Tensor:
        """The target at the read-outs that are scored."""
        asked = batch.truth.get("asked")
        return batch.target if asked is None else batch.target.where(asked, UNASKED)

    def loss(self, prediction: Tensor | FactoredLogits, target: Tensor) -> Tensor:
        """The mean cross-entropy of each prompt's asked positions, (B,)."""
        losses, asked = self._losses(*self._asked(prediction, target))
        return losses.sum(dim=1) / asked.sum(dim=1)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """accuracy, and nll, the cross-entropy in nats; means over the asked positions, (B,).

        Where a logit is NaN, the answer counts as wrong and nll is NaN.
        """
        logits, target = self._asked(prediction, batch.target)
        assert isinstance(logits, Tensor)
        losses, asked = self._losses(logits, target)
        right = (rightness(logits, target.clamp(min=0)) * asked).sum(dim=1)
        count = asked.sum(dim=1)
        return {"accuracy": right / count, "nll": losses.sum(dim=1) / count}

    def evaluate(self, model: Model, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The metrics, part by part: the logits of all prompts would not fit into memory."""
        signature, total = self.signature, len(batch.target)
        size = max(1, AT_ONCE // (len(signature.readout) * signature.output_width))
        size = min(size, context.batch_size or size)
        parts = []
        for start in range(0, total, size):
            rows = slice(start, start + size)
            prompt = map_tensors(lambda t, rows=rows: t[rows], batch.prompt)
            prediction = model(to_device(prompt, context.device)).to("cpu", torch.float64)
            truth = {name: values[rows] for name, values in batch.truth.items()}
            parts.append(self.metrics(prediction, Batch(prompt, batch.target[rows], truth)))
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def floor(self, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """Accuracy 1 and nll 0."""
        ones = torch.ones(len(batch.target), dtype=torch.float64)
        return {"accuracy": ones, "nll": torch.zeros_like(ones)}

    def mask_after(self, prompt: Any, position: int) -> Any | None:
        """Text: replaces every id after that read-out by another one."""
        if not isinstance(prompt, Text):
            return None
        signature = self.signature
        return prompt.masked_after(signature.readout[position], signature.vocabulary)

    def _asked(
        self, prediction: Tensor | FactoredLogits, target: Tensor
    ) -> tuple[Tensor | FactoredLogits, Tensor]:
        """Logits and targets of at most `most_asked` read-outs, those that are asked first."""
        most = self.most_asked
        if most >= target.shape[1]:
            return prediction, target
        # A stable order of a fixed number: the shapes do not depend on the prompts.
        index = (target == UNASKED).to(torch.int8).argsort(dim=1, stable=True)[:, :most]
        return logits_at(prediction, index), target.gather(1, index)

    @staticmethod
    def _losses(prediction: Tensor | FactoredLogits, target: Tensor) -> tuple[Tensor, Tensor]:
        """The cross-entropies (B, n), 0 where nothing is asked, and whether it is."""
        asked = target != UNASKED
        # where, not a product: an unasked logit that is infinite must not matter.
        losses = token_loss(prediction, target.clamp(min=0))
        return torch.where(asked, losses, torch.zeros_like(losses)), asked
