"""Memory and time of the loss of a large vocabulary: logits at once, or as factors in chunks.

    python -m benchmarks.cross_entropy [--batch 32] [--length 256] [--width 512] [--autocast]

Each is measured in a process of its own, forward and backward: on a GPU the most that torch
allocated, elsewhere the most memory of the process beyond what it had before.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import torch

from iclbench.nn.logits import FactoredLogits, token_loss

WAYS = ("logits", "factors")


def measure(way: str, args: argparse.Namespace) -> dict[str, float]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator(device).manual_seed(0)
    shape = {"generator": generator, "device": device}
    states = torch.randn(args.batch, args.length, args.width, **shape).requires_grad_()
    weight = (0.02 * torch.randn(args.vocabulary, args.width, **shape)).requires_grad_()
    target = torch.randint(args.vocabulary, (args.batch, args.length), **shape)
    # The optimizer's own, so that it is in the memory before.
    weight.grad, states.grad = torch.zeros_like(weight), torch.zeros_like(states)
    before = _memory(device)
    start = time.perf_counter()
    with torch.autocast(device.type, torch.bfloat16, enabled=args.autocast):
        if way == "logits":
            loss = token_loss(states @ weight.mT, target)
        else:
            loss = token_loss(FactoredLogits(states, weight, None), target)
        loss.mean().backward()
    value = float(loss.mean())
    return {
        "loss": value,
        "seconds": time.perf_counter() - start,
        "GB": (_memory(device) - before) / 1e9,
    }


def _memory(device: torch.device) -> float:
    """The most bytes so far."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=50_257)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--autocast", action="store_true", help="bfloat16")
    parser.add_argument("--way", choices=WAYS, help="measure one here and print JSON")
    args = parser.parse_args()
    if args.way:
        print(json.dumps(measure(args.way, args)))
        return
    held = args.batch * args.length * args.vocabulary * 4 / 1e9
    print(f"logits in float32 are {held:.2f} GB; torch {torch.__version__}")
    for way in WAYS:
        words = [sys.executable, "-m", "benchmarks.cross_entropy", *sys.argv[1:], "--way", way]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{way:8} failed: {(done.stderr.strip().splitlines() or ['killed'])[-1]}")
            continue
        found = json.loads(done.stdout)
        print(f"{way:8} {found['GB']:.2f} GB beyond the factors, {found['seconds']:.1f} s, "
              f"loss {found['loss']:.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
