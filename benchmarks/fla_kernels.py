"""flash-linear-attention's kernels against the native recurrences, without a GPU.

    python -m benchmarks.fla_kernels [--lengths 5 33 100]

Prints the largest relative difference of the outputs and of each gradient in float32, for every
model that has kernels. Triton's interpreter runs the kernels' own source on the CPU. That shows
that the two compute the same function; it says nothing about a GPU's rounding and speed. Needs
`triton==3.5.1` and `flash-linear-attention==0.5.2`, which are not in any extra of this project on a
machine without a GPU.
"""

from __future__ import annotations

import builtins
import importlib
import os
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import torch
from tabulate import tabulate

from iclbench import Architecture, Signature, TrainingContext
from iclbench.api.prompts import Sequence
from iclbench.plugins import host

from . import argument_parser

MODELS: dict[str, dict[str, Any]] = {
    "retention": {},
    "gated-linear-attention": {},
    "mamba2": {},
    "hgrn2": {},
    "delta-net": {},
    "delta-net, two updates": {"updates": 2, "negative_eigenvalues": True},
    "gated-delta-net": {},
}
SIGNATURE = Signature(Sequence, "positions", 6, 3, 1, (5,))


class _Index(int):
    """A loop's index: kernels convert it as if it were Triton's."""

    def to(self, dtype: Any) -> int:
        """The number itself, of any dtype."""
        return int(self)


def interpret() -> None:
    """Prepare Triton's interpreter: call this before flash-linear-attention is imported."""
    os.environ |= {"TRITON_INTERPRET": "1", "FLA_CACHE_RESULTS": "0"}
    interpreter = importlib.import_module("triton.runtime.interpreter")
    autotuner = importlib.import_module("triton.runtime.autotuner").Autotuner
    patch_tensor = interpreter._patch_lang_tensor

    def patched(tensor: Any) -> None:
        patch_tensor(tensor)
        # Newer versions of numpy convert no array of one element.
        tensor.__index__ = lambda self: int(self.handle.data.item())

    def first_configuration(self: Any, *args: Any, **options: Any) -> Any:
        """Without a GPU there is nothing to time."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        return self.fn.run(*args, **options, **self.configs[0].all_kwargs())

    interpreter._patch_lang_tensor = patched
    autotuner.run = first_configuration
    states = importlib.import_module("fla.ops.common.chunk_delta_h")
    vars(states)["range"] = lambda *ends: map(_Index, builtins.range(*ends))


def rows(lengths: list[int]) -> Iterator[dict[str, object]]:
    """A line for each model and length."""
    kernels = importlib.import_module("iclbench_recurrent.kernels")
    for name, args in MODELS.items():
        architecture = host().load("model", name.split(",")[0], Architecture)()
        torch.manual_seed(0)
        config = architecture.Config(layers=2, width=8, **args)
        mixer: Any = architecture.build(SIGNATURE, config).blocks[1].mixer
        form = kernels.KERNELS[mixer.kernel](kernels._import)
        for length in lengths:
            context = TrainingContext(torch.device("cpu"), torch.float32, 4, length=length)
            relative = kernels.differences(mixer, form, context)
            gradients = [value for what, value in relative.items() if what != "outputs"]
            yield {
                "model": name,
                "length": length,
                "outputs": f"{relative['outputs']:.1e}",
                "gradients, largest": f"{max(gradients):.1e}",
            }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[5, 33, 100])
    arguments = parser.parse_args()
    interpret()
    table = list(rows(arguments.lengths))
    versions = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("flash-linear-attention", "triton", "torch")
    )
    print(
        f"{versions}\n\n{tabulate(table, headers='keys', tablefmt='github', disable_numparse=True)}"
    )


if __name__ == "__main__":
    main()
