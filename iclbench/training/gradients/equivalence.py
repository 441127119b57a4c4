"""Whether a program computes the losses and gradients of `plain`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...api.errors import first_line
from ...api.prompts import Batch, map_tensors
from ...precision import default_dtype
from ..replicas import Replicas
from .binding import NoFormError
from .plain import Plain
from .program import GradientProgram, Loss, MakeProgram, prompts_of
from .wrappers import Accumulated, Autocast

#: Prompts per replica that are compared in float64.
SAMPLE = 8

#: Standard deviation of the noise that moves the parameters for the second comparison in float64.
MOVE = 0.1

#: Relative difference that is allowed in float64, in the run's dtype, and under autocast.
IN_FLOAT64, IN_DTYPE, UNDER_AUTOCAST = 1e-6, 1e-3, 0.1

#: A program may differ from `plain` by this many times the rounding error of `plain` itself.
ROUNDING = 10

#: Losses (R,) and gradients (R, P).
Results = tuple[Tensor, Tensor]


class Reference:
    """The results of `plain`, computed once, with which programs are compared.

    In float64, where rounding hides nothing, a few prompts are compared parameter by parameter
    (Adam heeds small gradients as much as large ones), then once more at moved parameters (a weight
    that starts at zero hides what follows it). In the run's dtype, each replica's gradient is
    compared as a whole, on the whole batch: a program may compute large inputs in another way.
    """

    def __init__(
        self,
        replicas: Replicas,
        batch: Batch,
        loss: Loss,
        *,
        autocast: torch.dtype | None = None,
        factored_logits: bool = False,
    ) -> None:
        """Compute the reference on `batch`, each field (R, B, …)."""
        self.replicas, self.batch, self.loss = replicas, batch, loss
        self.autocast, self.factored_logits = autocast, factored_logits
        try:
            self.whole = self._run(self._plain(replicas), batch)
        except torch.OutOfMemoryError:  # a faster program may need less
            self.batch = prompts_of(batch, 0, SAMPLE)
            self.whole = self._run(self._plain(replicas), self.batch)
        self.sample = _to_float64(prompts_of(batch, 0, SAMPLE))
        self.exact: list[tuple[Replicas, Results]] = []
        with default_dtype(torch.float64):
            for exact in self._in_float64():
                try:
                    self.exact.append((exact, Plain(exact.copy(), loss)(self.sample)))
                except Exception:
                    return  # a model of one dtype: the comparison in that dtype has to do

    def find_mismatch(self, make: MakeProgram, *, in_float64: bool = True) -> str | None:
        """Return why the program that `make` makes can't be used, or None where it agrees.

        Raises NoFormError where the module has no form for the program.
        """
        try:
            with default_dtype(torch.float64):
                for replicas, expected in self.exact if in_float64 else ():
                    results = make(replicas.copy())(self.sample)
                    mismatch = _compare(results, expected, IN_FLOAT64, replicas)
                    if mismatch is not None:
                        return mismatch
            results = self._run(make(self.replicas.copy()), self.batch)
        except NoFormError:
            raise
        except Exception as error:
            return first_line(error)
        tolerance = IN_FLOAT64 if self.replicas.flat.dtype == torch.float64 else IN_DTYPE
        if self.autocast is not None:
            tolerance = UNDER_AUTOCAST
        mismatch = _compare(results, self.whole, tolerance)
        return None if mismatch is None or self._is_rounding(results) else mismatch

    def _plain(self, replicas: Replicas) -> GradientProgram:
        program = Plain(replicas.copy(), self.loss)
        size = self.batch.target.shape[1]
        if not self.factored_logits or size <= SAMPLE:
            return program
        # The paper's module holds all logits, which for a large vocabulary are too many at once.
        parts = next(n for n in range(2, size + 1) if size % n == 0 and size // n <= SAMPLE)
        return Accumulated(program, parts)

    def _run(self, program: GradientProgram, batch: Batch) -> Results:
        if self.autocast is not None:
            program = Autocast(program, batch.target.device, self.autocast)
        losses, gradients = program(batch)
        return losses.clone(), gradients.clone()

    def _in_float64(self) -> list[Replicas]:
        """The replicas at their parameters and at moved ones."""
        there, moved = self.replicas.copy(torch.float64), self.replicas.copy(torch.float64)
        noise = torch.randn(moved.flat.shape, generator=torch.Generator().manual_seed(0))
        moved.flat = moved.flat + MOVE * noise.to(moved.flat)
        return [there, moved]

    def _is_rounding(self, results: Results) -> bool:
        """Whether a mismatch is rounding, as it is where the model starts at an exact solution."""
        if not self.exact:
            return False
        with default_dtype(torch.float64):
            exact = self._plain(self.replicas.copy(torch.float64))(_to_float64(self.batch))
        return all(
            bool((_norms(a - c) <= ROUNDING * _norms(b - c)).all())
            for a, b, c in zip(results, self.whole, exact, strict=True)
        )


def _compare(
    results: Results, expected: Results, tolerance: float, replicas: Replicas | None = None
) -> str | None:
    """Return how results differ, or None; gradients by parameter where `replicas` are given.

    Replicas with a value that is not finite are left out: moved parameters may overflow.
    """
    finite = torch.isfinite(expected[0]) & torch.isfinite(expected[1]).all(dim=1)
    (losses, gradients), (losses_b, gradients_b) = (
        (values[finite], rows[finite]) for values, rows in (results, expected)
    )
    if not torch.allclose(losses.to(losses_b), losses_b, rtol=tolerance, atol=0):
        return f"losses differ from plain's by {(losses - losses_b).abs().max():.1e}"
    # Beside the replica's whole gradient, a part that is rounding alone may differ freely.
    rounding = ROUNDING * torch.finfo(gradients_b.dtype).eps * gradients_b.norm(dim=1)
    parts = {"all": (gradients, gradients_b)}
    if replicas is not None:
        a, b = replicas.split(gradients), replicas.split(gradients_b)
        parts = {name: (a[name], b[name]) for name in a}
    for name, (part, part_b) in parts.items():
        if not (_norms(part - part_b) <= tolerance * _norms(part_b) + rounding).all():
            of = "" if replicas is None else f" of {name}"
            return f"gradients{of} differ from plain's"
    return None


def _norms(rows: Tensor) -> Tensor:
    """Return the norm of each row, (R, …) → (R,), also for R = 0."""
    norms: Tensor = rows.reshape(len(rows), math.prod(rows.shape[1:])).norm(dim=1)
    return norms


def _to_float64(batch: Batch) -> Batch:
    def double(value: Any) -> Any:
        return value.double() if value.is_floating_point() else value

    return Batch(map_tensors(double, batch.prompt), double(batch.target))
