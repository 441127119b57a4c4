"""The task `linear-system`: solve symmetric positive definite systems (Vladymyrov et al.)."""

from __future__ import annotations

import torch
from torch import Tensor

from iclbench import (
    Axis,
    Batch,
    Distance,
    Draws,
    FloorKind,
    LinearSystem,
    Primary,
    Random,
    Shift,
    Signature,
    Task,
    exact_solve,
)

from .config import LinearSystemConfig, Sizes
from .recipes import PAPER, QUICK
from .shifts import system_shifts
from .spectra import eigenvalues, symmetric


class LinearSystems(Task[LinearSystemConfig]):
    """Predict x, Ax = b, from A (symmetric positive definite), b and a starting point x₀.

    x ~ N(0, I) and b = Ax, so that every direction counts equally. The target is the solution of
    the rounded prompt in evaluation, and x itself in training. In training, systems are padded with
    zeros to the largest size, and targets with NaN, which the loss ignores. In evaluation each size
    has its own batch. A metric has one value per prompt, its mean over the sizes, and `…_by_size`
    has one per size.
    """

    name = "linear-system"
    version = 2
    Config = LinearSystemConfig
    recipes = {"quick": QUICK, "paper": PAPER}
    training_only = frozenset({"sizes", "mixed", "loss"})
    replica_args = frozenset({"condition_number", "spectrum", "scale", "start"})
    stream = "linear systems evaluation"
    errors = {
        "squared_error": "squared",
        "squared_error_by_size": "squared",
        "relative_residual": "absolute",
        "relative_residual_by_size": "absolute",
    }
    floor_summary = "The solution of the rounded system, solved exactly."

    @property
    def floor_kind(self) -> FloorKind:
        """`exact`: the rounded prompt determines the solution."""
        return "exact"

    @property
    def primary(self) -> Primary:
        """‖x̂ − x‖²/N."""
        return Primary("squared_error")

    @property
    def signature(self) -> Signature:
        """S = N + 1 tokens of width N + 1, read at the last, for the largest N."""
        c = self.config
        sizes = {*c.sizes, *self.cases}
        # Also of the sizes in evaluation: a model must be able to answer both.
        n = max(sizes)
        return Signature(
            prompt=LinearSystem,
            target="solution",
            length=n + 1,
            input_width=n + 1,
            output_width=n,
            readout=(n,),
            shapes={"a": (n, n), "b": (n,), "x0": (n,), "size": ()} if len(sizes) == 1 else {},
            varies=len(sizes) > 1,
        )

    @property
    def parameters(self) -> dict[str, Tensor]:
        """spectrum: the smallest and the largest eigenvalue of every A, (2,)."""
        c = self.config
        return {
            "spectrum": c.scale * torch.tensor([1.0 / c.condition_number, 1.0], dtype=torch.float64)
        }

    @property
    def cases(self) -> Sizes:
        """The sizes of evaluation."""
        return self.config.evaluate or self.config.sizes

    @property
    def shifts(self) -> dict[str, Shift]:
        """Other spectra, condition numbers, sizes and scales."""
        return system_shifts(self.config)

    @property
    def axes(self) -> dict[str, Axis]:
        """Each metric by size."""
        axis = Axis("size", tuple(map(float, self.cases)))
        return {"squared_error_by_size": axis, "relative_residual_by_size": axis}

    def draw(self, random: Random) -> Draws:
        """a (B, N, N), solution and start (B, N), and size (B,); see the class for the padding."""
        c = self.config
        if random.case is not None:
            systems = self._systems(random, random.case)
            # Evaluation has a batch per size, which needs no padding.
            return {**systems, "size": torch.full((len(systems["a"]),), random.case)}
        # One size per batch by default; a mixed batch is padded to the largest.
        chosen = random.integers("size", len(c.sizes), each="row" if c.mixed else "batch")
        size = torch.tensor(c.sizes, device=chosen.device)[chosen]
        if len(c.sizes) == 1:
            return {**self._systems(random, c.sizes[0]), "size": size}
        padded: Draws = {}
        for n in c.sizes:
            mask = size == n
            rows = mask.nonzero()[:, 0]
            if len(rows):
                # Only the rows of this size are drawn, each from its replica's generator.
                for name, values in self._systems(random.where(mask, n), n).items():
                    if name not in padded:
                        padded[name] = _padding(name, values, len(size), max(c.sizes))
                    _place(padded[name], rows, values)
        return {**padded, "size": size}

    def _systems(self, random: Random, n: int) -> Draws:
        """Systems of size n, one per row."""
        c = self.config
        vectors, uniform = random.normal("vectors", n, n), random.uniform("values", n)
        solution, start = random.normal("solution", n), random.normal("start", n)
        values = eigenvalues(uniform, c.condition_number, c.spectrum)
        return {
            # x stays N(0, I): scaling A and b together leaves the solution as it is.
            "a": c.scale * symmetric(vectors, values),
            "solution": solution,
            # Drawn in both cases, so that start=zero changes no other draw.
            "start": start if c.start == "normal" else torch.zeros_like(start),
        }

    def arrange(self, draws: Draws) -> Batch:
        """b = Ax; the target is x."""
        a, x, size = draws["a"], draws["solution"], draws["size"]
        b = torch.zeros_like(x)
        sizes = [a.shape[1]] if len(self.config.sizes) == 1 else sorted(set(size.tolist()))
        for n in sizes:
            # Without the padding, which would change the last bits of b.
            rows = slice(None) if len(sizes) == 1 else (size == n).nonzero()[:, 0]
            b[rows, :n] = (a[rows, :n, :n] @ x[rows, :n].unsqueeze(2))[..., 0]
        return Batch(LinearSystem(a, b, draws["start"], size), x.unsqueeze(1))

    def answer(self, batch: Batch) -> Tensor:
        """The solution of the rounded system."""
        return exact_solve(batch.prompt.a, batch.prompt.b.unsqueeze(2)).mT

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """‖x̂ − x‖²/N of each prompt, or its logarithm, (B,), without the padding."""
        unpadded = ~target.isnan()
        difference = torch.where(unpadded, prediction - target.nan_to_num(), 0.0)
        error = difference.square().sum(dim=(1, 2)) / unpadded.sum(dim=(1, 2))
        # Errors below ε² are rounding.
        floor = torch.finfo(error.dtype).eps ** 2
        return error if self.config.loss == "mean" else (error + floor).log()

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """squared_error, ‖x̂ − x‖²/N; relative_residual, ‖Ax̂ − b‖/‖b‖; both (B,)."""
        # In float32 the rounding of Ax̂ would be as large as a good solution's residual.
        a, b = batch.prompt.a.double(), batch.prompt.b.double()
        error = (prediction - batch.target).square().mean(dim=(1, 2))
        residual = (a @ prediction.mT)[..., 0] - b
        return {
            "squared_error": error,
            "relative_residual": residual.norm(dim=1) / b.norm(dim=1),
        }

    def combine(self, parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Each value's mean over the sizes, and its values by size, (B, sizes)."""
        combined = {}
        for name in parts[0]:
            # A prompt of each size counts as one prompt: sizes weigh equally.
            by_size = torch.stack([part[name] for part in parts], dim=1)
            combined[name] = by_size.mean(dim=1)
            if f"{name}_by_size" in self.axes:
                combined[f"{name}_by_size"] = by_size
        return combined

    def errors_at(self, batch: Batch, distance: Distance) -> dict[str, Tensor]:
        """See `Task`; the residual is a distance of Ax̂ from b."""
        b = batch.prompt.b.double()
        residual = distance(b).norm(dim=1) / b.norm(dim=1)
        return super().errors_at(batch, distance) | {"relative_residual": residual}


def _padding(name: str, values: Tensor, count: int, largest: int) -> Tensor:
    """Padding for matrices or vectors of the largest size: NaN for the solution, else zeros."""
    shape = (count, *(largest for _ in values.shape[1:]))
    return values.new_full(shape, torch.nan if name == "solution" else 0.0)


def _place(padded: Tensor, rows: Tensor, values: Tensor) -> None:
    """Write square matrices or vectors into the given rows of a padded tensor."""
    n = values.shape[1]
    if values.ndim == 3:
        padded[rows, :n, :n] = values
    else:
        padded[rows, :n] = values
