"""The metric `attention-matrices`: has the free form learned gradient descent's matrices?"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from iclbench import Batch, EvaluationContext, Metric, Task, finite

from .free_form import FreeForm, FreeHead


class AttentionMatrices(Metric):
    """W_Q, W_K, W_V and P of the first head of every block, with AᵀB and ED, as `maps` (App. F).

    A and B are the columns of W_Q and W_K that see x, D those of W_V that see w_y, E the rows of P
    that write f. Gradient descent has AᵀB = cI and ED = cI. As numbers, for each block: `c`, the
    mean of the diagonal; `deviation`, ‖M − cI‖/‖M‖ of M = AᵀB or ED (Frobenius: 0 for the identity;
    a Gaussian n × n matrix has about √(1 − 1/n²)); `asymmetry`, ‖M − Mᵀ‖/2‖M‖; `share_…`, how much
    of ‖W‖² is in A, B, D, E; `difference` ‖A − B‖/√(‖A‖² + ‖B‖²), the same of E and Dᵀ.
    """

    name = "attention-matrices"

    def supports(self, task: Task[Any]) -> str | None:
        """Any task that the model can do."""
        return None

    def supports_model(self, model: nn.Module) -> str | None:
        """The free form of gd-transformer."""
        free = isinstance(model, FreeForm)
        return None if free else "only gd-transformer with form=free has attention matrices"

    def analysis(
        self, model: nn.Module, task: Task[Any], batches: list[Batch], context: EvaluationContext
    ) -> dict[str, Any]:
        """See the class."""
        free = cast(FreeForm, model)
        heads = [cast(FreeHead, head) for head in free.first]
        maps = [one for k, head in enumerate(heads) for one in _maps(head, free, k)]
        return {"blocks": [_numbers(*parts(head, free)) for head in heads], "maps": maps}


def parts(head: FreeHead, model: FreeForm) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """W_Q, W_K, W_V and P of a head, and their parts A, B, D and E, float64."""
    d, width = model.dim, model.width
    whole = {
        "W_Q": head.query, "W_K": head.key, "W_V": head.value, "P": head.project,
    }  # fmt: skip
    found = {name: matrix.detach().to("cpu", torch.float64) for name, matrix in whole.items()}
    inner = {
        "A": found["W_Q"][:, :d],
        "B": found["W_K"][:, :d],
        "D": found["W_V"][:, d : d + width],
        "E": found["P"][-width:],
    }
    return found, inner


def _numbers(whole: dict[str, Tensor], inner: dict[str, Tensor]) -> dict[str, Any]:
    A, B, D, E = (inner[name] for name in "ABDE")
    shares = zip(("query", "key", "value", "project"), whole.values(), inner.values(), strict=True)
    return {
        "query_key": {**_identity(A.mT @ B), "difference": _difference(A, B)},
        "value_project": {**_identity(E @ D), "difference": _difference(E, D.mT)},
        **{
            f"share_{name}": finite(float(_square(part) / _square(matrix)))
            for name, matrix, part in shares
        },
    }


def _identity(matrix: Tensor) -> dict[str, float | None]:
    """c, and how far the matrix is from cI and from a symmetric one."""
    c = matrix.diagonal().mean()
    left = matrix - c * torch.eye(len(matrix)).to(matrix)
    return {
        "c": finite(float(c)),
        "deviation": finite(float((_square(left) / _square(matrix)).sqrt())),
        "asymmetry": finite(float((_square(matrix - matrix.mT) / _square(matrix)).sqrt() / 2.0)),
    }


def _difference(a: Tensor, b: Tensor) -> float | None:
    return finite(float((_square(a - b) / (_square(a) + _square(b))).sqrt()))


def _square(matrix: Tensor) -> Tensor:
    return matrix.square().sum().clamp(min=torch.finfo(matrix.dtype).tiny)


def _maps(head: FreeHead, model: FreeForm, block: int) -> list[dict[str, Any]]:
    whole, inner = parts(head, model)
    products = {"AᵀB": inner["A"].mT @ inner["B"], "ED": inner["E"] @ inner["D"]}
    label = f" of block {block + 1}" if len(model.first) > 1 else ""
    return [
        {
            "name": name + label,
            "values": [[finite(round(v, 6)) for v in row] for row in matrix.tolist()],
        }
        for name, matrix in {**whole, **products}.items()
    ]
