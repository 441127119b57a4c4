"""What the speed benchmark trains: fixed configurations, named by model and size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

#: Prompts of D = 5 and N = 20 (41 tokens), a loss at every input, as in Garg et al. and the
#: least-squares paper.
PREFIXES = "least-squares-prefixes"


@dataclass(frozen=True)
class Configuration:
    """One model on one task, and the numbers of replicas that it is timed at."""

    name: str
    model: str
    task: str
    model_args: dict[str, Any]
    batch: int
    replicas: tuple[int, ...] = (1, 4, 16, 64)
    #: On a CPU, where models bound by arithmetic gain nothing from replicas.
    replicas_cpu: tuple[int, ...] = (1, 4, 16, 64)
    #: On a GPU also by `--engine compiled`, whose program a graph captures.
    replicas_compiled: tuple[int, ...] = ()
    #: What the field's loop trains beside it: GPT-2, BaseConv by Conv1d, or nothing comparable.
    reference: Literal["gpt2", "conv1d", "none"] = "none"
    chunk: int = 20
    task_args: dict[str, Any] = field(default_factory=dict)


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
