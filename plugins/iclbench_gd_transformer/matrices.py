"""The metric `attention-matrices`: did the free form learn the matrices of gradient descent?"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from iclbench import Batch, EvaluationContext, Metric, Task, finite

from .free_form import FreeForm, FreeHead


class AttentionMatrices(Metric):
    """How close the learned attention matrices are to those that perform gradient descent.

    The maps show W_Q, W_K, W_V, P, AᵀB and ED of the first head of every block, as Appendix F of
    Wang et al. 2025 does. A and B are the columns of W_Q and W_K that see x, D those of W_V that
    see w_y, and E the rows of P that write f. Gradient descent has AᵀB = cI and ED = cI. For every
    block and M = AᵀB or ED, in Frobenius norms:

    - `c`: mean of the diagonal
    - `deviation`: ‖M − cI‖/‖M‖; 0 for cI, about √(1 − 1/n²) for a Gaussian n × n matrix
    - `asymmetry`: ‖M − Mᵀ‖/2‖M‖
    - `difference`: ‖A − B‖/√(‖A‖² + ‖B‖²); for ED, of E and Dᵀ
    - `share_…`: the fraction of ‖W‖² in A, B, D or E
    """

    name = "attention-matrices"

    def supports(self, task: Task[Any]) -> str | None:
        """Accept any task that the model supports."""
        return None

    def supports_model(self, model: nn.Module) -> str | None:
        """Accept the free form of gd-transformer."""
        return None if isinstance(model, FreeForm) else "it needs gd-transformer with form=free"

    def analysis(
        self, model: nn.Module, task: Task[Any], batches: list[Batch], context: EvaluationContext
    ) -> dict[str, Any]:
        """See the class."""
        free = cast(FreeForm, model)
        heads = [cast(FreeHead, head) for head in free.first]
        maps = [item for k, head in enumerate(heads) for item in _maps(head, free, k)]
        return {"blocks": [_numbers(*parts(head, free)) for head in heads], "maps": maps}


def parts(head: FreeHead, model: FreeForm) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """W_Q, W_K, W_V and P of a head, and their parts A, B, D and E, float64 on the CPU."""
    d, width = model.dim, model.width
    parameters = {
        "W_Q": head.query, "W_K": head.key, "W_V": head.value, "P": head.project,
    }  # fmt: skip
    whole = {name: matrix.detach().to("cpu", torch.float64) for name, matrix in parameters.items()}
    inner = {
        # Matrices multiply tokens from the left: columns read parts of a token, rows write.
        "A": whole["W_Q"][:, :d],
        "B": whole["W_K"][:, :d],
        "D": whole["W_V"][:, d : d + width],
        "E": whole["P"][-width:],
    }
    return whole, inner


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
    """c, and the matrix's distance from cI and from a symmetric matrix."""
    c = matrix.diagonal().mean()
    rest = matrix - c * torch.eye(len(matrix)).to(matrix)
    return {
        "c": finite(float(c)),
        "deviation": finite(float((_square(rest) / _square(matrix)).sqrt())),
        "asymmetry": finite(float((_square(matrix - matrix.mT) / _square(matrix)).sqrt() / 2.0)),
    }


def _difference(a: Tensor, b: Tensor) -> float | None:
    return finite(float((_square(a - b) / (_square(a) + _square(b))).sqrt()))


def _square(matrix: Tensor) -> Tensor:
    # Of a matrix of zeros the ratios are 0/0, which `finite` makes None.
    return matrix.square().sum()


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
