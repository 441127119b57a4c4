"""The linear transformer in block form: its time against N, compared with classical solvers.

    python -m benchmarks.linear_systems --threads 1

For every N it prints the time of one layer on a batch of systems, its multiply-adds, the time with
explicit block matrices, and the error of Chebyshev's iteration and of conjugate gradients with as
many multiply-adds as four layers of two heads.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from tabulate import tabulate
from torch import Tensor

from iclbench import load_task
from iclbench.api.architecture import Architecture
from iclbench.plugins import host
from iclbench_linear_transformer.architecture import multiply_adds
from iclbench_linear_transformer.modules import BlockLayer
from iclbench_linear_transformer.tokens import block_tokens, component_mask

from . import argument_parser

SIZES = (4, 9, 16, 32, 64, 128, 256)
BATCH = 16


def seconds(run: Callable[[], object], repeats: int = 7) -> float:
    """The median time of a call."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def materialized(blocks: Tensor, n: int) -> Tensor:
    """The matrix (4N + 1, 4N + 1) with blocks p·I, p·1 and p."""
    eye, ones = torch.eye(n), torch.ones(n, 1)
    top = torch.cat([torch.kron(blocks[:4, :4], eye), torch.kron(blocks[:4, 4:], ones)], dim=1)
    bottom = torch.cat([torch.kron(blocks[4:, :4], ones.mT), blocks[4:, 4:]], dim=1)
    return torch.cat([top, bottom])


def by_matrices(layer: BlockLayer, tokens: Tensor, n: int) -> Tensor:
    """The same layer with explicit P and Q."""
    P, Q = materialized(layer.P[0], n), materialized(layer.Q[0], n)
    rows = tokens[:, :-1]
    return tokens + (tokens @ Q.mT @ rows.mT) @ (rows @ P.mT)


def error(model: str, steps: int, prompt: Any, target: Tensor) -> float:
    """The median ‖x̂ − x‖²/N of a solver."""
    solver: Architecture = host().load("model", model, Architecture)()
    module = solver.build(load_task("linear-system").signature, solver.Config(steps=steps))
    prediction = module(prompt).double()
    return float((prediction - target).square().mean(dim=(1, 2)).median())


def row(n: int) -> dict[str, object]:
    """The row of one size."""
    (batch,) = load_task("linear-system", sizes=n).evaluation_batches(BATCH, 0, torch.float32)
    layer = BlockLayer(1, 0.1)
    tokens, mask = block_tokens(batch.prompt), component_mask(batch.prompt)
    flat = torch.cat([tokens.vectors.flatten(2), tokens.scalars[..., None]], dim=2)
    fast = seconds(lambda: layer(tokens, mask))
    slow = seconds(lambda: by_matrices(layer, flat, n))
    work = multiply_adds(n, 1)
    iterations = multiply_adds(n, 4, heads=2) // n**2
    chebyshev = error("chebyshev", iterations, batch.prompt, batch.target)
    conjugate = error("conjugate-gradient", iterations, batch.prompt, batch.target)
    return {
        "N": n,
        "ms per layer": f"{1e3 * fast:.2f}",
        "multiply-adds": f"{work:.1e}",
        "10⁹ per second": f"{BATCH * work / fast / 1e9:.1f}",
        "ms with matrices": f"{1e3 * slow:.2f}",
        "cost of 4 layers in products with A": iterations,
        "Chebyshev, 4": f"{error('chebyshev', 4, batch.prompt, batch.target):.1e}",
        "Chebyshev, equal cost": f"{chebyshev:.1e}",
        "CG, 4": f"{error('conjugate-gradient', 4, batch.prompt, batch.target):.1e}",
        "CG, equal cost": f"{conjugate:.1e}",
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    torch.set_num_threads(parser.parse_args().threads)
    print(
        f"torch {torch.__version__}, CPU, {torch.get_num_threads()} threads, float32, {BATCH} "
        "systems of κ = 10; times are medians of 7\n"
    )
    torch.manual_seed(0)
    with torch.no_grad():
        rows = [row(n) for n in SIZES]
    print(tabulate(rows, headers="keys", tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    main()
