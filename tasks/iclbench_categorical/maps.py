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
    Streams,
    Task,
    finite,
    predict,
    torch_generator,
)

from .base import CategoricalTask, Draws

#: Points along each axis, the centres of so many cells of [−1, 1].
GRID = 24


class ProbabilityMaps(Metric):
    """Probabilities at GRID² points of [−1, 1]² for one context, as `maps`; d = 2.

    The context is fresh, the same for every model. The categories shown are the most probable ones
    in each quadrant, counter-clockwise from the top right, under the true f and W_e; samples of
    them are shown by their number, others as circles. As numbers: `divergence`, the mean over the
    plane of KL(truth ‖ model); `agreement`, the share of it where both have the same most probable
    category; `accuracy`, the mean true probability of the model's, and `bound`, of the best.
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
        cpu = torch.device("cpu")
        generator = torch_generator(cpu, "probability maps", task.name)
        draws = task.draw(Streams(1, [generator], cpu, torch.float64))
        prompt = task.arrange(draws, batches[0].prompt.x.dtype).prompt
        points = plane()
        truth = _truth(task, draws, points)
        asked = _asked(prompt, points, task.config.queries)
        found = predict(model, asked, context)[:, 0].log_softmax(dim=1)
        chosen = _categories(truth, points)
        return {
            **_numbers(found, truth),
            "categories": chosen,
            "maps": [_map(found, prompt, category, chosen) for category in chosen],
        }


def axis() -> Tensor:
    """The points along each axis, float64."""
    return (torch.arange(GRID, dtype=torch.float64) + 0.5) * 2.0 / GRID - 1.0


def plane() -> Tensor:
    """All points, row by row upwards, (GRID², 2)."""
    rows, columns = torch.meshgrid(axis(), axis(), indexing="ij")
    return torch.stack([columns, rows], dim=2).reshape(-1, 2)


def _truth(task: CategoricalTask[Any], draws: Draws, points: Tensor) -> Tensor:
    """log p(c | x) at the points, (GRID², C)."""
    embedding = task.parameters["embedding"]
    return (task.function(draws, points[None], embedding)[0] @ embedding.mT).log_softmax(dim=1)


def _asked(prompt: Any, points: Tensor, queries: int) -> Any:
    """The context with each of the points as the query, (GRID², …): any model can be asked so."""

    def repeated(t: Tensor) -> Tensor:
        return t.expand(len(points), *t.shape[1:])

    query = points.to(prompt.x)[:, None].expand(-1, queries, -1)
    return Categorical(repeated(prompt.x), repeated(prompt.y), query)


def _categories(truth: Tensor, points: Tensor) -> list[int]:
    right, top = points[:, 0] > 0, points[:, 1] > 0
    found: list[int] = []
    for quadrant in (right & top, ~right & top, ~right & ~top, right & ~top):
        best = int(truth[quadrant].exp().mean(dim=0).argmax())
        found += [best] if best not in found else []
    return found


def _numbers(found: Tensor, truth: Tensor) -> dict[str, float | None]:
    best, true = found.argmax(dim=1), truth.argmax(dim=1)
    there = truth.exp()
    return {
        "divergence": finite(float((there * (truth - found)).sum(dim=1).mean())),
        "agreement": float((best == true).double().mean()),
        "accuracy": float(there.gather(1, best[:, None]).mean()),
        "bound": float(there.amax(dim=1).mean()),
    }


def _map(found: Tensor, prompt: Any, category: int, chosen: list[int]) -> dict[str, Any]:
    values = found[:, category].exp().reshape(GRID, GRID)
    places = [round(v, 4) for v in axis().tolist()]
    text = [str(y) if y in chosen else "○" for y in prompt.y[0].tolist()]
    x, y = ([round(v, 4) for v in column.tolist()] for column in prompt.x[0].double().unbind(1))
    return {
        "name": f"p(y = {category} | x)",
        "group": "probability",
        "values": [[finite(round(v, 6)) for v in row] for row in values.tolist()],
        "x": places,
        "y": places,
        "points": {"x": x, "y": y, "text": text},
    }
