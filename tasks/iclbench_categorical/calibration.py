"""The metric `calibration`: are predictions made with 70% confidence right 70% of the time?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from iclbench import Batch, EvaluationContext, Metric, Task, finite, predict, rightness

#: Number of bins of confidence, of equal width.
BINS = 15


class Calibration(Metric):
    """`brier`, the squared distance between probabilities and the class, for each prompt.

    The analysis has the expected calibration error over all prompts (Guo et al. 2017): the mean of
    |accuracy − confidence| over 15 bins of confidence, weighted by their counts; and the accuracy,
    confidence and count of each bin, null for the means of an empty one. If a confidence is not a
    number, the error is null.
    """

    name = "calibration"

    def supports(self, task: Task[Any]) -> str | None:
        """Tasks that ask for a class."""
        target = task.signature.target
        return None if target == "class" else f"it needs a task that asks for a class, not {target}"

    def compute(
        self, model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """brier (B,)."""
        return {"brier": _brier(predict(model, batch.prompt, context).softmax(dim=2), batch.target)}

    def floor(self, model: nn.Module, task: Task[Any], batch: Batch) -> dict[str, Tensor]:
        """brier of the task's reference."""
        reference = task.reference(batch)
        if reference is None:
            return {}
        # As `predict` returns predictions.
        reference = reference.to("cpu", torch.float64)
        return {"brier": _brier(reference.softmax(dim=2), batch.target)}

    def analysis(
        self, model: nn.Module, task: Task[Any], batches: list[Batch], context: EvaluationContext
    ) -> dict[str, Any]:
        """See the class."""
        answers = [(predict(model, b.prompt, context).softmax(dim=2), b.target) for b in batches]
        confidence = torch.cat([p.amax(dim=2).flatten() for p, _ in answers])
        right = torch.cat([rightness(p, y).flatten() for p, y in answers])
        # A confidence of exactly 1 would fall into a bin too many.
        bins = (confidence * BINS).long().clamp(0, BINS - 1)
        count = torch.bincount(bins, minlength=BINS).double()
        sums = [torch.zeros(BINS).double().index_add(0, bins, v) for v in (right, confidence)]
        # The mean of an empty bin is 0/0, which has no weight here and no point in the plot.
        accuracy, mean = (s / count for s in sums)
        gaps = torch.where(count > 0, count * (accuracy - mean).abs(), 0.0)
        return {
            "expected_calibration_error": finite(float(gaps.sum() / count.sum())),
            "accuracy": [finite(value) for value in accuracy.tolist()],
            "confidence": [finite(value) for value in mean.tolist()],
            "count": count.long().tolist(),
            "plots": [
                {
                    "title": "Reliability",
                    "x": {"title": "confidence", "path": "confidence"},
                    "y": {"title": "fraction that is right"},
                    "lines": [
                        {"name": "model", "path": "accuracy"},
                        {"name": "calibrated", "path": "confidence"},
                    ],
                }
            ],
        }


def _brier(probabilities: Tensor, target: Tensor) -> Tensor:
    """Mean over the queries of Σ_c (p_c − [c = y])², (B,)."""
    one_hot = nn.functional.one_hot(target, probabilities.shape[2])
    return (probabilities - one_hot).square().sum(dim=2).mean(dim=1)
