"""Measure Gaussian elimination by ReLU networks against the number and range of knots.

    python -m benchmarks.elimination

Prints the relative error ‖x̂ − x‖/‖x‖ in both dtypes. The systems have 5 equations: symmetric
positive definite matrices with eigenvalues spaced geometrically from 1 to 10, and the normal
equations of the task `ridge` (D = 5, N = 20).
"""

from __future__ import annotations

import torch
from tabulate import tabulate
from torch import Tensor

from iclbench import load_task, philox
from iclbench.precision import default_dtype, full_precision
from iclbench_linear_attention.elimination import Elimination, geometric_knots

from . import argument_parser

SYSTEMS, SIZE = 1024, 5
KNOTS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
RANGES = ((1e-2, 1e3), (1e-1, 1e2), (2.0, 1e2))


def positive_definite() -> tuple[Tensor, Tensor]:
    """F (B, 5, 5) with condition number 10 and a (B, 5), float64."""
    draws = philox("elimination benchmark", "systems").standard_normal((SYSTEMS, SIZE, SIZE + 1))
    vectors = torch.linalg.qr(torch.from_numpy(draws[..., :SIZE]))[0]
    F = (vectors * torch.logspace(0, 1, SIZE, dtype=torch.float64)) @ vectors.mT
    return F, (F @ torch.from_numpy(draws[..., SIZE:]))[..., 0]


def normal_equations() -> tuple[Tensor, Tensor]:
    """XᵀX + λI and Xᵀy of the task `ridge`, float64."""
    prompt = load_task("ridge").evaluation_batches(SYSTEMS, 0, torch.float64)[0].prompt
    gram = prompt.x.mT @ prompt.x + torch.diag_embed(prompt.ridge[:, None].expand(-1, SIZE))
    return gram, (prompt.x.mT @ prompt.y)[..., 0]


def row(F: Tensor, a: Tensor, dtype: torch.dtype, knots: Tensor) -> dict[str, object]:
    """The errors on systems Fx = a in a dtype, as columns of the table."""
    F, a = F.to(dtype), a.to(dtype)
    exact = torch.linalg.solve(F.double(), a.double())
    with default_dtype(dtype), full_precision(dtype):
        solution, outside = Elimination(knots)(F, a)
    # A system with a pivot outside the knots has no meaningful error.
    errors = ((solution.double() - exact).norm(dim=1) / exact.norm(dim=1))[~outside]
    any_inside = len(errors) > 0
    return {
        "median error": f"{errors.median():.1e}" if any_inside else "",
        "largest error": f"{errors.max():.1e}" if any_inside else "",
        "digits of the largest": f"{-errors.max().log10():.1f}" if any_inside else "",
        "pivot outside": f"{float(outside.double().mean()):.1%}",
    }


def main() -> None:
    """Print the table."""
    argument_parser(__doc__).parse_args()
    print(f"torch {torch.__version__}, CPU, {SYSTEMS} systems of {SIZE} equations\n")
    rows = []
    for name, system in (("κ = 10", positive_definite()), ("ridge", normal_equations())):
        for low, high in RANGES:
            # The number of knots varies only over the first range.
            for count in KNOTS if (low, high) == RANGES[0] else (10_000,):
                for dtype in (torch.float64, torch.float32):
                    setting = {"systems": name, "pivots": f"{low:g} … {high:g}", "knots": count}
                    setting["dtype"] = str(dtype).removeprefix("torch.")
                    errors = row(*system, dtype, geometric_knots(low, high, count))
                    rows.append({**setting, **errors})
    print(tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
