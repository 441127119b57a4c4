"""The task `linear-system`: solve symmetric positive definite systems (Vladymyrov et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor

from iclbench import (
    Axis,
    Batch,
    LinearSystem,
    Primary,
    Signature,
    Streams,
    Task,
    TaskConfig,
    map_tensors,
    philox,
    with_lead,
)

from .recipes import PAPER, QUICK
from .spectra import Spectrum, eigenvalues, symmetric

#: Errors below this are zero in float64: what has fewer digits than it can't be told apart.
SMALLEST = 1e-32

Sizes = tuple[Annotated[int, Field(ge=2)], ...]


def parse_sizes(value: Any) -> Any:
    """9, "2-9", "2,4,8" or a list as a tuple of sizes; other values as they are."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return (value,)
    if isinstance(value, str):
        found: list[int] = []
        for part in value.split(","):
            low, dash, high = part.partition("-")
            try:
                sizes = range(int(low), int(high if dash else low) + 1)
            except ValueError:
                raise ValueError(f"{value!r} is no size, list or range such as 2-9") from None
            if not sizes:
                raise ValueError(f"{part!r} is an empty range")
            found += sizes
        return tuple(found)
    return value


class LinearSystemConfig(TaskConfig):
    """Sizes, spectrum, and what training sees."""

    sizes: Sizes = Field((9,), description="N in training: a number, a list, or a range as 2-9")
    evaluate: Sizes | None = Field(None, description="N in evaluation; null is `sizes`")
    condition_number: float = Field(
        10.0, ge=1, le=1e12, description="κ; eigenvalues lie in [1/κ, 1]"
    )
    spectrum: Spectrum = Field("log-uniform", description="eigenvalues between the extremes")
    scale: float = Field(1.0, ge=1e-6, le=1e6, description="factor on A and b")
    start: Literal["zero", "normal"] = Field("zero", description="x₀: 0, or N(0, I)")
    mixed: bool = Field(False, description="mix sizes in a training batch, not one size a batch")
    loss: Literal["mean", "log"] = Field(
        "mean", description="‖x̂ − x‖²/N, or its logarithm, to which a factor counts alike anywhere"
    )

    @field_validator("sizes", "evaluate", mode="before")
    @classmethod
    def _parsed(cls, value: Any) -> Any:
        return parse_sizes(value)

    @model_validator(mode="after")
    def _evaluated_somewhere(self) -> LinearSystemConfig:
        for sizes in (self.sizes, self.evaluate):
            if sizes is not None and (not sizes or len(set(sizes)) != len(sizes)):
                raise ValueError("sizes must be distinct, and at least one")
        if self.evaluate is None:
            object.__setattr__(self, "evaluate", self.sizes)
        if self.mixed and len(self.sizes) == 1:
            raise ValueError("mixed needs several sizes")
        return self


class LinearSystems(Task[LinearSystemConfig]):
    """Predict x, Ax = b, from A (symmetric positive definite), b and a starting point x₀.

    x ~ N(0, I) and b = Ax, so that every direction counts alike. In evaluation the target is the
    solution of the prompt's rounded numbers, in training x itself. In training, systems are padded
    with zeros up to the largest size, and the target with NaN, which the loss leaves out; in
    evaluation each size is a batch of its own. Every metric is one value a prompt, its mean over
    the sizes, and `…_by_size`.
    """

    name = "linear-system"
    version = 1
    Config = LinearSystemConfig
    recipes = {"quick": QUICK, "paper": PAPER}
    training_only = frozenset({"sizes", "mixed", "loss"})
    replica_args = frozenset({"condition_number", "spectrum", "scale", "start"})
    scales = {
        "relative_residual": "first",
        "relative_residual_by_size": "first",
        "digits": "digits",
        "digits_by_size": "digits",
    }

    @property
    def primary(self) -> Primary:
        """‖x̂ − x‖²/N."""
        return Primary("squared_error")

    @property
    def signature(self) -> Signature:
        """S = N + 1 tokens of width N + 1, read at the last, for the largest N."""
        c = self.config
        sizes = {*c.sizes, *self._evaluated}
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
    def _evaluated(self) -> Sizes:
        return self.config.evaluate or self.config.sizes

    @property
    def axes(self) -> dict[str, Axis]:
        """Each metric by size."""
        axis = Axis("size", tuple(map(float, self._evaluated)))
        return {f"{name}_by_size": axis for name in ("squared_error", "relative_residual",
                                                    "digits")}  # fmt: skip

    def sample(
        self, n: int, generator: torch.Generator, device: torch.device, dtype: torch.dtype
    ) -> Batch:
        """n fresh systems, each of its own size, padded to the largest."""
        streams = Streams(n, [generator], device, dtype)
        return self._systems(self._drawn_sizes(streams), streams)

    def sample_batches(
        self,
        batches: int,
        size: int,
        generator: torch.Generator,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Batch:
        """Training batches, of one size each unless `mixed`."""
        if self.config.mixed:
            return super().sample_batches(batches, size, generator, device, dtype)
        found = self._batches(Streams(batches, [generator], device, dtype), size)
        return Batch(map_tensors(lambda t: t[0], found.prompt), found.target[0])

    def sample_replicas(
        self,
        batches: int,
        size: int,
        generators: Sequence[torch.Generator],
        device: torch.device,
        dtype: torch.dtype,
    ) -> Batch:
        """Training batches of all replicas, computed at once where all systems are of one size."""
        if len(self.config.sizes) > 1:
            return super().sample_replicas(batches, size, generators, device, dtype)
        return self._batches(Streams(batches, generators, device, dtype), size)

    def _batches(self, streams: Streams, size: int) -> Batch:
        """A batch of one size a row, (R, n, size, …); R = 1 where there are several sizes."""
        sizes = self._drawn_sizes(streams).repeat_interleave(size)
        return with_lead(self._systems(sizes, streams), len(streams.generators), -1, size)

    def _drawn_sizes(self, streams: Streams) -> Tensor:
        known = torch.tensor(self.config.sizes, device=streams.device)
        return known[streams.integers(len(known))]

    def _systems(self, sizes: Tensor, streams: Streams) -> Batch:
        """Systems of these sizes (B,), padded to the largest that is trained on."""
        generators, device, dtype = streams.generators, streams.device, streams.dtype
        count, largest = len(sizes), max(self.config.sizes)
        if len(self.config.sizes) == 1:
            own = Streams(count // len(generators), generators, device, dtype)
            a, b, x0, x = self._equations(largest, own)
            return Batch(LinearSystem(a, b, x0, sizes), x.unsqueeze(1))
        a = torch.zeros(count, largest, largest, device=device, dtype=dtype)
        b = torch.zeros(count, largest, device=device, dtype=dtype)
        x0 = torch.zeros_like(b)
        x = torch.full_like(b, torch.nan)
        for n in self.config.sizes:
            of_size = (sizes == n).nonzero()[:, 0]
            if not len(of_size):
                continue
            own = Streams(len(of_size), generators, device, dtype)
            found = self._equations(n, own)
            a[of_size, :n, :n], b[of_size, :n], x0[of_size, :n], x[of_size, :n] = found
        return Batch(LinearSystem(a, b, x0, sizes), x.unsqueeze(1))

    def _equations(self, n: int, streams: Streams) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """A, b, x₀ and x of systems of size n, one for each row."""
        draws = {
            "vectors": streams.normal(n, n),
            "values": streams.uniform(n),
            "solution": streams.normal(n),
            "start": streams.normal(n),
        }
        a, solution, start = self._compose(draws)
        return a, (a @ solution.unsqueeze(2))[..., 0], start, solution

    def _compose(self, draws: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """A, x and x₀ from raw draws, in their dtype."""
        c = self.config
        values = eigenvalues(draws["values"], c.condition_number, c.spectrum)
        a = c.scale * symmetric(draws["vectors"], values)
        start = draws["start"] if c.start == "normal" else torch.zeros_like(draws["start"])
        return a, draws["solution"], start

    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """For each size vectors, solution and start, standard normal, and values, uniform."""
        found = {}
        for size in self._evaluated:
            for name, shape in (
                ("vectors", (n, size, size)),
                ("values", (n, size)),
                ("solution", (n, size)),
                ("start", (n, size)),
            ):
                source = philox("linear systems evaluation", size, name, seed)
                drawn = source.uniform(size=shape) if name == "values" else (
                    source.standard_normal(shape)
                )  # fmt: skip
                found[f"{name} {size}"] = drawn
        return found

    def evaluation_set(self, n: int, seed: int, dtype: torch.dtype) -> list[Batch]:
        """A batch of n systems for each size, not padded."""
        draws = self.evaluation_draws(n, seed)
        batches = []
        for size in self._evaluated:
            names = ("vectors", "values", "solution", "start")
            own = {name: torch.from_numpy(draws[f"{name} {size}"]) for name in names}
            a, x, start = (t.to(dtype) for t in self._compose(own))
            b = (a.double() @ x.double().unsqueeze(2))[..., 0].to(dtype)
            prompt = LinearSystem(a, b, start, torch.full((n,), size))
            batches.append(Batch(prompt, exact_solution(a, b).unsqueeze(1)))
        return batches

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """‖x̂ − x‖²/N of each prompt, or its logarithm, (B,); what is padded is left out."""
        there = ~target.isnan()
        difference = torch.where(there, prediction - target.nan_to_num(), 0.0)
        error = difference.square().sum(dim=(1, 2)) / there.sum(dim=(1, 2))
        # Below ε² an error is rounding.
        floor = torch.finfo(error.dtype).eps ** 2
        return error if self.config.loss == "mean" else (error + floor).log()

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """squared_error, ‖x̂ − x‖²/N; relative_residual, ‖Ax̂ − b‖/‖b‖; digits of the first; (B,)."""
        a, b = batch.prompt.a.double(), batch.prompt.b.double()
        error = (prediction - batch.target).square().mean(dim=(1, 2))
        residual = (a @ prediction.mT)[..., 0] - b
        return {
            "squared_error": error,
            "relative_residual": residual.norm(dim=1) / b.norm(dim=1),
            "digits": -error.clamp(min=SMALLEST).log10(),
        }

    def combine(self, parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Each value's mean over the sizes, and its values by size, (B, sizes)."""
        found = {}
        for name in parts[0]:
            by_size = torch.stack([part[name] for part in parts], dim=1)
            found[name] = by_size.mean(dim=1)
            if f"{name}_by_size" in self.axes:
                found[f"{name}_by_size"] = by_size
        return found

    def reference(self, batch: Batch) -> Tensor:
        """Cholesky in the prompt's dtype; NaN where that finds A not positive definite."""
        factor, failed = torch.linalg.cholesky_ex(batch.prompt.a)
        solution: Tensor = torch.cholesky_solve(batch.prompt.b.unsqueeze(2), factor)
        return solution.mT.masked_fill(failed[:, None, None] > 0, torch.nan)


def exact_solution(a: Tensor, b: Tensor) -> Tensor:
    """x (B, N) in float64 with ax = b for the numbers of a (B, N, N) and b (B, N) as they are.

    LU in float64, its residual taken in extended precision (where the machine has one) and solved
    for again: a solution from float64 alone would make that dtype's floor zero. Its relative error
    is about 2⁻⁶⁴ times the condition number, and at least float64's.
    """
    a, b = a.double(), b.double()
    factor = torch.linalg.lu_factor(a)
    A, B = a.numpy().astype(np.longdouble), b.numpy().astype(np.longdouble)
    x = torch.linalg.lu_solve(*factor, b.unsqueeze(2))[..., 0].numpy().astype(np.longdouble)
    for _ in range(3):
        residual = B - np.einsum("bij,bj->bi", A, x)
        right = torch.from_numpy(residual.astype(np.float64)).unsqueeze(2)
        x = x + torch.linalg.lu_solve(*factor, right)[..., 0].numpy()
    return torch.from_numpy(x.astype(np.float64))
