"""Compare BaseConv's two convolutions, by product and by FFT.

    python -m benchmarks.convolution [--device cuda]

Prints one row per sequence length: the time of a forward and backward pass (median of interleaved
repeats), and the error against float64.
"""

from __future__ import annotations

import statistics
import time

import torch
from tabulate import tabulate

from iclbench_baseconv.convolution import convolve

from . import argument_parser

BATCH, CHANNELS, REPEATS = 64, 64, 7
LENGTHS = (21, 41, 64, 128, 192, 256, 512)


def seconds(u: torch.Tensor, h: torch.Tensor, method: str) -> float:
    """Seconds of one forward and backward pass of u (B, S, C) and the taps h (S, C)."""
    started = time.perf_counter()
    convolve(u, h, True, method).sum().backward()
    if u.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def error(u: torch.Tensor, h: torch.Tensor, method: str) -> float:
    """Root mean square error against the direct sum in float64."""
    with torch.no_grad():
        exact = convolve(u.double(), h.double(), True, "direct")
        return float((convolve(u, h, True, method).double() - exact).square().mean().sqrt())


def row(length: int, device: str) -> dict[str, object]:
    """The table's row for one sequence length."""
    u = torch.randn(BATCH, length, CHANNELS, device=device, requires_grad=True)
    h = torch.randn(length, CHANNELS, device=device, requires_grad=True)
    times: dict[str, list[float]] = {"direct": [], "fft": []}
    for repeat in range(REPEATS + 1):
        for method, method_times in times.items():
            elapsed = seconds(u, h, method)
            # The first repeat warms up caches and allocators.
            if repeat > 0:
                method_times.append(elapsed)
    medians = {method: 1e3 * statistics.median(values) for method, values in times.items()}
    return {
        "length": length,
        **{f"{method} ms": f"{value:.2f}" for method, value in medians.items()},
        "direct is faster by": f"{medians['fft'] / medians['direct']:.2f}",
        **{f"{method} error": f"{error(u, h, method):.1e}" for method in times},
    }


def main() -> None:
    """Print the table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print(
        f"{name}, {torch.get_num_threads()} threads, torch {torch.__version__}, float32, "
        f"batch {BATCH}, {CHANNELS} channels, causal; root mean square errors\n"
    )
    rows = [row(length, device) for length in LENGTHS]
    print(tabulate(rows, headers="keys", tablefmt="github"))


if __name__ == "__main__":
    main()
