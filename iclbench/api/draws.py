"""Sources of the random numbers that a task draws its prompts from.

A task sees one interface, `Random`. Training and evaluation each have an implementation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from .random import philox

Draws = dict[str, Tensor]
"""Independent quantities behind prompts: name → (rows, …), one row per prompt."""

Each = Literal["row", "batch"]


class Random(Protocol):
    """Random numbers, one row per prompt. Every quantity has a name of its own."""

    @property
    def case(self) -> int | None:
        """The case of an evaluation batch (see `Task.cases`); None in training."""
        ...

    @property
    def training(self) -> bool:
        """Whether training prompts are drawn."""
        ...

    def normal(self, name: str, *shape: int) -> Tensor:
        """Standard normal numbers, (rows, *shape)."""
        ...

    def uniform(self, name: str, *shape: int) -> Tensor:
        """Numbers uniform on [0, 1), (rows, *shape)."""
        ...

    def integers(self, name: str, stop: int, *shape: int, each: Each = "row") -> Tensor:
        """Integers in [0, stop), (rows, *shape), int64; each="batch": equal within a batch."""
        ...

    def where(self, rows: Tensor, case: int) -> Random:
        """Random numbers for the rows that are True in `rows` (rows,), named by `case`.

        The chosen rows are not whole batches, so integers(each="batch") raises ValueError in
        training.
        """
        ...


class TrainingRandom:
    """Random numbers from one torch generator per replica, on the generators' device.

    The first rows belong to the first generator, and so on. A generator yields the same numbers
    whatever the others are. `counts` is the number of rows per generator, `size` the number of
    prompts in a batch, and `dtype` that of the real numbers.
    """

    training = True

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        counts: Sequence[int],
        dtype: torch.dtype,
        *,
        size: int | None = 1,
        case: int | None = None,
    ) -> None:
        self._generators, self._counts, self._size = generators, list(counts), size
        self._dtype, self.case = dtype, case

    def normal(self, name: str, *shape: int) -> Tensor:
        """See `Random`."""
        return self._draw(Tensor.normal_, self._counts, shape, self._dtype)

    def uniform(self, name: str, *shape: int) -> Tensor:
        """See `Random`."""
        return self._draw(Tensor.uniform_, self._counts, shape, self._dtype)

    def integers(self, name: str, stop: int, *shape: int, each: Each = "row") -> Tensor:
        """See `Random`."""

        def fill(part: Tensor, *, generator: torch.Generator) -> Tensor:
            return part.random_(0, stop, generator=generator)

        if each == "row":
            return self._draw(fill, self._counts, shape, torch.int64)
        if self._size is None:
            raise ValueError("integers(each='batch') needs whole batches, not rows of where()")
        batches = [count // self._size for count in self._counts]
        return self._draw(fill, batches, shape, torch.int64).repeat_interleave(self._size, dim=0)

    def where(self, rows: Tensor, case: int) -> TrainingRandom:
        """See `Random`; on a GPU this waits for the device."""
        counts = torch.stack([part.sum() for part in rows.split_with_sizes(self._counts)]).tolist()
        return TrainingRandom(self._generators, counts, self._dtype, size=None, case=case)

    def passes(self, count: int) -> Tensor:
        """The numbers below `count` in shuffled passes, a new one per call, (rows,), int64."""
        parts = []
        for generator, rows in zip(self._generators, self._counts, strict=True):
            orders = [
                torch.randperm(count, generator=generator, device=generator.device)
                for _ in range(-(-rows // count))
            ]
            parts.append(torch.cat(orders)[:rows])
        return torch.cat(parts)

    def _draw(
        self,
        fill: Callable[..., Tensor],
        counts: list[int],
        shape: tuple[int, ...],
        dtype: torch.dtype,
    ) -> Tensor:
        # One tensor for all generators: on a GPU that is a single launch per generator.
        device = self._generators[0].device
        numbers = torch.empty((sum(counts), *shape), dtype=dtype, device=device)
        for part, generator in zip(numbers.split_with_sizes(counts), self._generators, strict=True):
            if len(part):
                fill(part, generator=generator)
        return numbers


class EvaluationRandom:
    """Random numbers in float64 on the CPU from NumPy's Philox, one generator per name.

    They depend on (stream, case, name, seed) alone, and the first n rows of more are the same n.
    `recorded` keeps every array that was drawn, by name, followed by the case where there is one.
    `next_rows` goes on to the rows after these, so that a large set needs not be in memory at once.
    """

    training = False

    def __init__(self, stream: str, n: int, seed: int, case: int | None = None) -> None:
        self._stream, self._n, self._seed, self.case = stream, n, seed, case
        self._rows: Tensor | None = None
        self._generators: dict[str, np.random.Generator] = {}
        #: What all rows share, drawn once.
        self._shared: dict[str, np.ndarray] = {}
        self.recorded: dict[str, np.ndarray] = {}

    def next_rows(self, n: int) -> None:
        """Draw the n rows after those that were drawn, from now on."""
        self._n = n
        self.recorded.clear()

    def normal(self, name: str, *shape: int) -> Tensor:
        """See `Random`."""
        return self._record(name, self._generator(name).standard_normal((self._n, *shape)))

    def uniform(self, name: str, *shape: int) -> Tensor:
        """See `Random`."""
        return self._record(name, self._generator(name).uniform(size=(self._n, *shape)))

    def integers(self, name: str, stop: int, *shape: int, each: Each = "row") -> Tensor:
        """See `Random`."""
        if each == "row":
            numbers = self._generator(name).integers(stop, size=(self._n, *shape))
        else:
            key = self._key(name)
            if key not in self._shared:
                self._shared[key] = self._generator(name).integers(stop, size=(1, *shape))
            numbers = np.broadcast_to(self._shared[key], (self._n, *shape)).copy()
        return self._record(name, numbers)

    def where(self, rows: Tensor, case: int) -> EvaluationRandom:
        """See `Random`; the other rows are drawn too, so that a prefix stays the same."""
        part = EvaluationRandom(self._stream, self._n, self._seed, case)
        part._rows, part.recorded = rows, self.recorded
        part._generators, part._shared = self._generators, self._shared
        return part

    def _key(self, name: str) -> str:
        return name if self.case is None else f"{name} {self.case}"

    def _generator(self, name: str) -> np.random.Generator:
        key = self._key(name)
        if key not in self._generators:
            case = () if self.case is None else (self.case,)
            self._generators[key] = philox(self._stream, *case, name, self._seed)
        return self._generators[key]

    def _record(self, name: str, numbers: np.ndarray) -> Tensor:
        key = self._key(name)
        if key in self.recorded:
            raise ValueError(f"draw() draws {key!r} twice; give each quantity a name of its own")
        self.recorded[key] = numbers
        drawn = torch.from_numpy(numbers)
        return drawn if self._rows is None else drawn[self._rows]


class DrawsDigest:
    """SHA-256 of the raw draws behind an evaluation set, which are added part by part.

    It covers `title`, which names the task, and for each quantity its name, dtype, shape, and the
    SHA-256 of its rows in order. So it does not depend on how the rows are divided into parts.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._hashes: dict[str, hashlib._Hash] = {}
        self._rows: dict[str, int] = {}
        self._forms: dict[str, str] = {}

    def add(self, draws: Mapping[str, np.ndarray]) -> None:
        """Add further rows of quantities: name → (rows, …)."""
        for name, values in draws.items():
            self._hashes.setdefault(name, hashlib.sha256()).update(
                np.ascontiguousarray(values).data
            )
            self._rows[name] = self._rows.get(name, 0) + len(values)
            self._forms[name] = f"{values.dtype} {values.shape[1:]}"

    def hexdigest(self) -> str:
        """The digest of all rows that were added."""
        lines = [self._title]
        for name in sorted(self._hashes):
            content = self._hashes[name].hexdigest()
            lines.append(f"{name} {self._forms[name]} {self._rows[name]} {content}")
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
