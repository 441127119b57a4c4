"""The configurations of the speed benchmark, named by model and size."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

#: D = 5 and N = 20 (41 tokens) with a loss at every input, as in Garg et al. and the least-squares
#: paper.
PREFIXES = "least-squares-prefixes"
#: Steps of a chunk in the shipped recipes.
USUAL_CHUNK = 20


@dataclass(frozen=True)
class Configuration:
    """One model on one task, and the numbers of replicas to time."""

    name: str
    model: str
    task: str
    model_args: dict[str, Any]
    batch: int
    replicas: tuple[int, ...] = (1, 4, 16, 64)
    #: On a CPU, where arithmetic-bound models gain nothing from replicas.
    replicas_cpu: tuple[int, ...] = (1, 4, 16, 64)
    #: On a GPU, additionally with `--engine compiled` inside a CUDA graph.
    replicas_compiled: tuple[int, ...] = ()
    #: The field's loop to compare with: GPT-2, BaseConv with Conv1d, or none.
    reference: Literal["gpt2", "conv1d", "none"] = "none"
    #: On a CPU, where a chunk of the recipes' 20 steps takes long to time; see `on`.
    chunk: int = USUAL_CHUNK
    task_args: dict[str, Any] = field(default_factory=dict)

    def on(self, device: str) -> Configuration:
        """The configuration on a device: a GPU takes chunks as users do, without waits inside."""
        return self if device == "cpu" else replace(self, chunk=USUAL_CHUNK)


CONFIGURATIONS = (
    Configuration(
        "transformer 2 × 64",
        "transformer",
        PREFIXES,
        {"layers": 2},
        256,
        replicas_cpu=(1, 4),
        replicas_compiled=(16,),
        reference="gpt2",
        chunk=2,
    ),
    Configuration(
        "transformer 12 × 64",
        "transformer",
        PREFIXES,
        {"layers": 12},
        256,
        replicas_cpu=(1,),
        replicas_compiled=(16,),
        reference="gpt2",
        chunk=1,
    ),
    Configuration(
        "baseconv 3 × 64",
        "baseconv",
        PREFIXES,
        {"layers": 3},
        256,
        replicas_cpu=(1,),
        replicas_compiled=(16,),
        reference="conv1d",
        chunk=2,
    ),
    Configuration(
        "baseconv 12 × 64",
        "baseconv",
        PREFIXES,
        {"layers": 12},
        256,
        replicas_cpu=(1,),
        replicas_compiled=(16,),
        reference="conv1d",
        chunk=1,
    ),
    Configuration("lsa, 1 layer", "lsa", "least-squares", {"layers": 1, "heads": 1}, 64),
    Configuration(
        "linear attention 1 × 16",
        "transformer",
        "least-squares",
        {"layers": 1, "width": 16, "attention": "linear", "layer_norm": False, "mlp": False},
        16,
        replicas=(1, 4, 16, 64, 256),
    ),
    Configuration(
        "linear transformer, 4 layers", "linear-transformer", "linear-system", {"layers": 4}, 64
    ),
    Configuration("gd-transformer, 2 blocks", "gd-transformer", "categorical", {"blocks": 2}, 64),
)
