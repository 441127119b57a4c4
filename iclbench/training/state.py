"""The state of a training: all that a checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..api.random import torch_generator
from ..api.recipe import Recipe
from ..api.task import Task
from .clock import Clock
from .curve import Curve
from .data import Data
from .optimizers.choice import make_optimizer
from .platforms import Platform, differing_names
from .replicas import Replicas
from .schedules import AdaptiveRate
from .validation import Validation


@dataclass(frozen=True)
class Replica:
    """What sets one replica apart: its run, its seed, its learning rate and its task's numbers."""

    seed: int
    learning_rate: float
    task: Task[Any] | None = None  # None: the training's; only its random draws may differ from it
    run: str = ""  # the run's id: runs may also differ in how their parameters start


class TrainingState:
    """Parameters, optimizer, data streams, schedule and curve of several replicas.

    `alive`, bool (R,), says which replicas have had finite losses and gradients so far, and
    `steps_alive`, int64 (R,), for how many steps. `step` counts completed steps, `clock` the time
    that they took. `validation` evaluates the replicas now and then, if it is set.
    """

    def __init__(
        self,
        modules: list[nn.Module],
        members: list[Replica],
        task: Task[Any],
        recipe: Recipe,
        *,
        device: torch.device,
        dtype: torch.dtype,
        freeze: tuple[str, ...] = (),
    ) -> None:
        self.members, self.task, self.recipe = members, task, recipe
        self.device, self.dtype = device, dtype
        self.replicas = Replicas(modules, device, freeze)
        self.optimizer = make_optimizer(self.replicas, recipe.optimizer, recipe.optimizer_args)
        tasks = [member.task or task for member in members]
        self.data = Data(tasks, [member.seed for member in members], recipe, device, dtype)
        self.rates = torch.tensor(
            [member.learning_rate for member in members], device=device, dtype=torch.float64
        ).to(dtype)
        self.alive = torch.ones(len(members), dtype=torch.bool, device=device)
        self.steps_alive = torch.zeros(len(members), dtype=torch.int64, device=device)
        self.mean_gradient: Tensor | None = None
        if recipe.gradient_memory:
            # Before the first step it is overwritten by the first gradient, see `Training.update`.
            self.mean_gradient = torch.zeros_like(self.replicas.flat)
        self.adaptive: AdaptiveRate | None = None
        if recipe.schedule == "adaptive":
            self.adaptive = AdaptiveRate(recipe, len(members), device)
            # Separate streams: measuring draws nothing from the training data.
            self.measuring = [torch_generator(device, "gradient cosine", m.seed) for m in members]
        self.curve = Curve(len(members), recipe.steps)
        self.step = 0
        self.clock = Clock(device)
        self.validation: Validation | None = None
        self.platform: Platform = {}
        self.moved: list[str] = []  # what differed between the platforms that it ran on

    @property
    def diverged_at(self) -> list[int | None]:
        """The step at which each replica diverged, counted from 0, or None."""
        alive, steps = self.alive.tolist(), self.steps_alive.tolist()
        return [None if lives else step for lives, step in zip(alive, steps, strict=True)]

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return tensors and JSON values from which `load_state` continues to the same bits."""
        optimizer_tensors, optimizer_values = self.optimizer.state()
        tensors = {
            **self.replicas.state(),
            "alive": self.alive,
            "steps_alive": self.steps_alive,
            **{f"optimizer/{name}": value for name, value in optimizer_tensors.items()},
            **{f"generator/{r}": state for r, state in enumerate(self.data.states())},
        }
        if self.mean_gradient is not None:
            tensors["schedule/mean_gradient"] = self.mean_gradient
        if self.adaptive is not None:
            tensors["schedule/factor"] = self.adaptive.factor
            tensors["schedule/cosine"] = self.adaptive.cosine
            for r, generator in enumerate(self.measuring):
                tensors[f"schedule/generator/{r}"] = generator.get_state()
        values = {
            "step": self.step,
            "clock": self.clock.state(),
            "optimizer": optimizer_values,
            "curve": self.curve.state(),
            "validation": self.validation.state() if self.validation else None,
            "platform": self.platform,
            "moved": self.moved,
        }
        return tensors, values

    def load_state(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Take up a state, in place."""
        self.replicas.load_state(tensors)
        self.alive.copy_(tensors["alive"])
        self.steps_alive.copy_(tensors["steps_alive"])
        prefix = "optimizer/"
        optimizer_tensors = {
            name.removeprefix(prefix): tensor
            for name, tensor in tensors.items()
            if name.startswith(prefix)
        }
        self.optimizer.load(optimizer_tensors, values["optimizer"])
        self.data.restore([tensors[f"generator/{r}"] for r in range(len(self.members))])
        if self.mean_gradient is not None:
            self.mean_gradient.copy_(tensors["schedule/mean_gradient"])
        if self.adaptive is not None:
            self.adaptive.factor.copy_(tensors["schedule/factor"])
            self.adaptive.cosine.copy_(tensors["schedule/cosine"])
            for r, generator in enumerate(self.measuring):
                generator.set_state(tensors[f"schedule/generator/{r}"])
        self.step = values["step"]
        self.clock.load_state(values["clock"])
        self.curve.load_state(values["curve"])
        if self.validation and values["validation"]:
            self.validation.load_state(values["validation"])
        self.moved = [*values["moved"], *differing_names(values["platform"], self.platform)]

    def layout(self) -> dict[str, Any]:
        """Return what must be equal in a training that continues this one."""
        return {
            "shapes": {name: list(shape) for name, shape in self.replicas.shapes.items()},
            "replicas": [[m.run, m.seed, m.learning_rate] for m in self.members],
            # The cosine schedule depends on the last step: another number is another training.
            "steps": self.recipe.steps,
            "device": self.device.type,
        }
