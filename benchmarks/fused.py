"""When a block's MLP pays as one step of autograd on a CPU: its speed against the input's size.

    python -m benchmarks.fused

For several widths and numbers of positions: how much faster `iclbench.nn.fused.mlp` is than the
operators one by one, forward and backward; medians of rounds that take turns, with one thread.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from tabulate import tabulate
from torch import Tensor, nn

from iclbench.nn import fused
from iclbench.precision import full_precision

from .timing import Clock

ROUNDS = 25


def by_operators(x: Tensor, layers: nn.Sequential, onto: Tensor) -> Tensor:
    """The same, operator by operator."""
    added: Tensor = onto + layers(x)
    return added


def row(width: int, positions: int) -> dict[str, object]:
    """One size's."""
    layers = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
    x, onto = (torch.randn(positions, width, requires_grad=True) for _ in range(2))
    leaves = [x, onto, *layers.parameters()]
    slope = torch.randn(positions, width)
    times: dict[Callable[..., Tensor], list[float]] = {by_operators: [], fused.mlp: []}
    for turn in range(ROUNDS + 1):
        for function, found in times.items():
            clock = Clock("cpu")
            torch.autograd.grad(function(x, layers, onto), leaves, slope)
            if turn:
                found.append(clock.read()[1])
    plain, one = (statistics.median(found) for found in times.values())
    return {
        "width": width,
        "positions": positions,
        "elements": f"{x.numel():.1e}",
        "ms": f"{1e3 * one:.3g}",
        "times as fast": f"{plain / one:.2f}",
        "chosen": fused.usable(x),
    }


def main() -> None:
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread; from {fused.WORTH_FUSING:,} elements\n")
    with full_precision(torch.float32):
        rows = [row(w, n) for w in (16, 64, 256) for n in (64, 256, 1024, 4096, 16384)]
    print(tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
