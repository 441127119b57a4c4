"""The metric `probability-maps`: p(y = c | x) over the plane, given one context (App. F)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from iclbench import (
    Batch,
    Categorical,
    EvaluationContext,
    Metric,
    Task,
    TrainingRandom,
    finite,
    predict,
    torch_generator,
)

from .base import CategoricalTask

#: Points along each axis: the centres of the cells of [−1, 1].
GRID = 24


class ProbabilityMaps(Metric):
    """Maps of the class probabilities that a model predicts over the plane, for one context.

    They are drawn at 24 × 24 points of [−1, 1]², as Appendix F of Wang et al. 2025 does. The
    context is fresh and the same for every model. The maps show the most probable class of each
    quadrant, counter-clockwise from the top right, under the true f and W_e. Examples of these
    classes are shown by number, others as circles. Numbers beside the maps:

    - `divergence`: the mean over the plane of KL(truth ‖ model)
    - `agreement`: the share of the plane where both have the same most probable class
    - `accuracy`: the mean true probability of the model's most probable class
    - `bound`: that of the best class

    Where an answer is NaN, it does not agree and is never right, and the divergence is null.
    """

    name = "probability-maps"

    def supports(self, task: Task[Any]) -> str | None:
        """Categorical tasks in the plane."""
        plane = isinstance(task, CategoricalTask) and task.config.dim == 2
        return None if plane else "it needs a categorical task with d = 2"

    def analysis(
        self, model: nn.Module, task: Task[Any], batches: list[Batch], context: EvaluationContext
    ) -> dict[str, Any]:
        """See the class."""
        assert isinstance(task, CategoricalTask)
        generator = torch_generator("cpu", "probability maps", task.name)
        # A named stream: every model sees the same context.
        draws = task.draw(TrainingRandom([generator], [1], torch.float64))
        prompt = task.round_and_arrange(draws, batches[0].prompt.x.dtype).prompt
        points = plane()
        # At the unrounded points; the model gets them rounded to its dtype.
        truth = task.log_probabilities(draws, points[None])[0]
        prompts = _with_queries(prompt, points, task.config.queries)
        # All queries of a prompt are the same point, so the first answer is enough.
        predicted = predict(model, prompts, context)[:, 0].log_softmax(dim=1)
        shown = _likely_classes(truth, points)
        return {
            **_numbers(predicted, truth),
            # The name of the key in published records.
            "categories": shown,
            "maps": [_map(predicted, prompt, label, shown) for label in shown],
        }


def axis() -> Tensor:
    """The points along each axis, float64."""
    # Centres of cells: no point lies on an axis, so every point belongs to one quadrant.
    return (torch.arange(GRID, dtype=torch.float64) + 0.5) * 2.0 / GRID - 1.0


def plane() -> Tensor:
    """All points, row by row upwards, (GRID², 2)."""
    rows, columns = torch.meshgrid(axis(), axis(), indexing="ij")
    return torch.stack([columns, rows], dim=2).reshape(-1, 2)


def _with_queries(prompt: Any, points: Tensor, queries: int) -> Any:
    """One prompt per point: the context with that point as its query, (GRID², …)."""

    def repeated(t: Tensor) -> Tensor:
        return t.expand(len(points), *t.shape[1:])

    # A prompt needs as many queries as in training: the same point fills them all.
    query = points.to(prompt.x)[:, None].expand(-1, queries, -1)
    return Categorical(repeated(prompt.x), repeated(prompt.y), query)


def _likely_classes(truth: Tensor, points: Tensor) -> list[int]:
    """The most probable class of each quadrant, without repetition."""
    right, top = points[:, 0] > 0, points[:, 1] > 0
    classes: list[int] = []
    for quadrant in (right & top, ~right & top, ~right & ~top, right & ~top):
        # The mean over the quadrant: near its borders another class may be the likeliest.
        best = int(truth[quadrant].exp().mean(dim=0).argmax())
        classes += [best] if best not in classes else []
    return classes


def _numbers(predicted: Tensor, truth: Tensor) -> dict[str, float | None]:
    best, true = predicted.argmax(dim=1), truth.argmax(dim=1)
    # argmax takes NaN for the largest number.
    valid = ~predicted.isnan().any(dim=1)
    probabilities = truth.exp()
    return {
        "divergence": finite(float((probabilities * (truth - predicted)).sum(dim=1).mean())),
        "agreement": float(((best == true) & valid).double().mean()),
        "accuracy": float((probabilities.gather(1, best[:, None]) * valid[:, None]).mean()),
        "bound": float(probabilities.amax(dim=1).mean()),
    }


def _map(predicted: Tensor, prompt: Any, label: int, shown: list[int]) -> dict[str, Any]:
    values = predicted[:, label].exp().reshape(GRID, GRID)
    ticks = [round(v, 4) for v in axis().tolist()]
    text = [str(y) if y in shown else "○" for y in prompt.y[0].tolist()]
    x, y = ([round(v, 4) for v in column.tolist()] for column in prompt.x[0].double().unbind(1))
    return {
        "name": f"p(y = {label} | x)",
        "group": "probability",
        "values": [[finite(round(v, 6)) for v in row] for row in values.tolist()],
        "x": ticks,
        "y": ticks,
        "points": {"x": x, "y": y, "text": text},
    }
