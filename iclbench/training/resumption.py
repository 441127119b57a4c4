"""What a training that was cut off continues from: its state as a checkpoint, and back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..api.errors import RecordError
from ..console import report
from .checkpoints import Checkpoint

if TYPE_CHECKING:
    from .loop import Training


@dataclass(frozen=True)
class Resumption:
    """Where a training keeps its checkpoint, how often, and whether to continue from it."""

    path: Path
    every_seconds: float = 30.0
    resume: bool = True
    code: str = ""  # what names the code that trains: another can't continue


def checkpoint_of(training: Training, code: str) -> Checkpoint:
    """All that `restore` needs to continue to the same bits."""
    t = training
    tensors, values = t.optimizer.state()
    content = {
        "flat": t.replicas.flat,
        "alive": t.alive,
        **{f"fixed/{n}": value for n, value in t.replicas.fixed.items()},
        **{f"optimizer/{n}": value for n, value in tensors.items()},
        **{f"generator/{r}": state for r, state in enumerate(t.data.states())},
        **{f"random/{r}": s for r, s in enumerate(t.random_states or [])},
        **_schedule_state(t),
    }
    about = {
        "layout": _layout(t, code),
        "window": [t.window.sums, t.window.count],
        "step": t.step,
        "seconds": t.seconds,
        "optimizer": values,
        "diverged_at": t.diverged_at,
        "curve_steps": t.curve_steps,
        "curve": t.curve,
    }
    return Checkpoint(content, about)


def restore(training: Training, checkpoint: Checkpoint, keep: Resumption) -> None:
    """Take up a checkpoint; raises RecordError for one of another run or other code."""
    t, tensors, values = training, checkpoint.tensors, checkpoint.values
    found, own = values["layout"], _layout(t, keep.code)
    if found != own:
        other = "was made by other code" if found["code"] != own["code"] else "is of another run"
        raise RecordError(f"checkpoint {keep.path} {other}; --no-resume starts afresh")
    report(f"continuing from step {values['step']} of {keep.path}")
    t.window.sums, t.window.count = values["window"]
    t.replicas.flat.copy_(tensors["flat"])
    for name, value in t.replicas.fixed.items():
        value.copy_(tensors[f"fixed/{name}"])
    t.optimizer.load(_under("optimizer/", tensors), values["optimizer"])
    t.data.restore([tensors[f"generator/{r}"] for r in range(len(t.who))])
    if t.random_states is not None:
        t.random_states = [tensors[f"random/{r}"] for r in range(len(t.who))]
    _restore_schedule(t, tensors)
    t.alive = tensors["alive"].to(t.device)
    t.step, t.seconds = values["step"], values["seconds"]
    t.diverged_at = values["diverged_at"]
    t.curve_steps, t.curve = values["curve_steps"], values["curve"]


def _layout(t: Training, code: str) -> dict[str, Any]:
    return {
        "code": code,
        "shapes": {name: list(shape) for name, shape in t.replicas.shapes.items()},
        "replicas": [[r.seed, r.learning_rate] for r in t.who],
        "device": t.device.type,
    }


def _schedule_state(t: Training) -> dict[str, Tensor]:
    """What the running mean of gradients and the adaptive rate continue from."""
    state = {}
    if t.mean_gradient is not None:
        state["schedule/mean_gradient"] = t.mean_gradient
    if t.adaptive is not None:
        state["schedule/factor"] = t.adaptive.factor
        state["schedule/cosine"] = t.adaptive.cosine
        for r, generator in enumerate(t.measuring):
            state[f"schedule/generator/{r}"] = generator.get_state()
    return state


def _restore_schedule(t: Training, tensors: dict[str, Tensor]) -> None:
    if t.mean_gradient is not None:
        t.mean_gradient.copy_(tensors["schedule/mean_gradient"])
    if t.adaptive is not None:
        t.adaptive.factor.copy_(tensors["schedule/factor"])
        t.adaptive.cosine.copy_(tensors["schedule/cosine"])
        for r, generator in enumerate(t.measuring):
            generator.set_state(tensors[f"schedule/generator/{r}"])


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
