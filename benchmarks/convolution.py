"""BaseConv's two convolutions: time of forward and backward, and error against float64.

    python -m benchmarks.convolution [--device cuda]

Prints one row a length, methods interleaved, medians of several repeats.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from tabulate import tabulate

from iclbench_baseconv.convolution import convolve

BATCH, CHANNELS, REPEATS = 64, 64, 7
LENGTHS = (21, 41, 64, 128, 192, 256, 512)


def seconds(u: torch.Tensor, h: torch.Tensor, method: str) -> float:
    started = time.perf_counter()
    convolve(u, h, True, method).sum().backward()
    if u.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def error(u: torch.Tensor, h: torch.Tensor, method: str) -> float:
    with torch.no_grad():
        exact = convolve(u.double(), h.double(), True, "direct")
        return float((convolve(u, h, True, method).double() - exact).square().mean().sqrt())


def row(length: int, device: str) -> dict[str, object]:
    u = torch.randn(BATCH, length, CHANNELS, device=device, requires_grad=True)
    h = torch.randn(length, CHANNELS, device=device, requires_grad=True)
    times: dict[str, list[float]] = {"direct": [], "fft": []}
    for repeat in range(REPEATS + 1):
        for method, found in times.items():
            found.append(seconds(u, h, method))
            if repeat == 0:
                found.clear()
    medians = {method: 1e3 * statistics.median(found) for method, found in times.items()}
    return {
        "length": length,
        **{f"{m} ms": f"{value:.2f}" for m, value in medians.items()},
        "direct is faster by": f"{medians['fft'] / medians['direct']:.2f}",
        **{f"{m} error": f"{error(u, h, m):.1e}" for m in times},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
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
