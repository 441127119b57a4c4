"""Compare the loss over a large vocabulary from full logits and from factored logits in chunks.

    python -m benchmarks.cross_entropy [--batch 32] [--length 256] [--width 512] [--autocast]

Measures the time and memory of a forward and backward pass, in a separate process for each method.
Memory is the increase of the peak: of torch's allocations on a GPU, of the process elsewhere.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import torch
from torch import Tensor

from iclbench.nn.logits import FactoredLogits, token_loss

from . import argument_parser

METHODS = ("logits", "factors")


def measure(method: str, args: argparse.Namespace) -> dict[str, float]:
    """The loss, the seconds, and the gigabytes beyond the factors and their gradients."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator(device).manual_seed(0)
    shape = {"generator": generator, "device": device}
    states = torch.randn(args.batch, args.length, args.width, **shape).requires_grad_()
    weight = (0.02 * torch.randn(args.vocabulary, args.width, **shape)).requires_grad_()
    target = torch.randint(args.vocabulary, (args.batch, args.length), **shape)
    # Training keeps these gradients anyway, so they count as allocated before.
    weight.grad, states.grad = torch.zeros_like(weight), torch.zeros_like(states)
    # The first pass of a process also loads kernels and starts threads.
    tiny = torch.randn(1, 2, args.width, **shape).requires_grad_()
    float(_loss_after_backward(method, tiny, weight, target[:1, :2], args.autocast))
    weight.grad.zero_()
    before = _memory_from_now_on(device)
    start = time.perf_counter()
    # float() waits for the GPU, so that the time includes the whole backward pass.
    value = float(_loss_after_backward(method, states, weight, target, args.autocast))
    return {
        "loss": value,
        "seconds": time.perf_counter() - start,
        "GB": (_peak_memory(device) - before) / 1e9,
    }


def _loss_after_backward(
    method: str, states: Tensor, weight: Tensor, target: Tensor, autocast: bool
) -> Tensor:
    """The mean loss of all tokens; adds to the gradients of the factors."""
    with torch.autocast(states.device.type, torch.bfloat16, enabled=autocast):
        if method == "logits":
            loss = token_loss(states @ weight.mT, target)
        else:
            loss = token_loss(FactoredLogits(states, weight, None), target)
        loss.mean().backward()
    return loss.detach().mean()


def _memory_from_now_on(device: torch.device) -> float:
    """The memory in use, in bytes, from which a peak is counted; elsewhere the peak so far."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    return _peak_memory(device)


def _peak_memory(device: torch.device) -> float:
    """Peak memory so far, in bytes."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    # In bytes on macOS, and in KiB elsewhere.
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Print one line per method."""
    parser = argument_parser(__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=50_257)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--autocast", action="store_true", help="bfloat16")
    parser.add_argument("--method", choices=METHODS, help="measure one in-process; print JSON")
    args = parser.parse_args()
    if args.method:
        print(json.dumps(measure(args.method, args)))
        return
    logits_gb = args.batch * args.length * args.vocabulary * 4 / 1e9
    print(f"logits in float32 take {logits_gb:.2f} GB; torch {torch.__version__}")
    for method in METHODS:
        # A process's peak memory never falls, so every method needs a fresh process.
        command = [sys.executable, "-m", "benchmarks.cross_entropy", *sys.argv[1:]]
        command += ["--method", method]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            print(f"{method:8} failed: {(result.stderr.strip().splitlines() or ['killed'])[-1]}")
            continue
        measured = json.loads(result.stdout)
        print(f"{method:8} {measured['GB']:.2f} GB beyond the factors, "
              f"{measured['seconds']:.1f} s, loss {measured['loss']:.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
