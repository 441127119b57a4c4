"""Whether a program computes the losses and gradients of `plain`."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ...api.errors import first_line, is_out_of_memory
from ...api.prompts import Batch, map_tensors
from ...precision import default_dtype
from ..replicas import Replicas
from .binding import NoFormError
from .capacity import COMPARED_ELEMENTS, prompts_at_once
from .plain import Plain
from .program import GradientProgram, Loss, MakeProgram, prompts_of, replicas_of
from .wrappers import Accumulated, Autocast

#: Prompts per replica that are compared in float64.
SAMPLE = 8

#: Standard deviation of the noise that moves the parameters for the second comparison in float64,
#: and in the run's dtype: only as far as it takes to leave a kink.
MOVE, NUDGE = 0.1, 1e-3

#: Relative difference that is allowed in float64, in the run's dtype, and under autocast.
IN_FLOAT64, IN_DTYPE, UNDER_AUTOCAST = 1e-6, 1e-3, 0.1

#: A program may differ from `plain` by this many times the rounding error of `plain` itself.
ROUNDING = 10


class Results(NamedTuple):
    """What a program leaves: losses (R,), gradients (R, P), and every tensor (R, …) of its state.

    `state` is compared because a forward pass may change it, as batch statistics do.
    """

    losses: Tensor
    gradients: Tensor
    state: dict[str, Tensor]

    @property
    def finite(self) -> Tensor:
        """Which replicas have finite losses and gradients, bool (R,)."""
        return torch.isfinite(self.losses) & torch.isfinite(self.gradients).all(dim=1)


class Reference:
    """The results of `plain`, computed once, with which programs are compared.

    In float64, where rounding hides nothing, a few prompts are compared parameter by parameter
    (Adam heeds small gradients as much as large ones), then once more at moved parameters (a weight
    that starts at zero hides what follows it). In the run's dtype, each replica's gradient is
    compared as a whole, on the whole batch: a program may compute large inputs in another way.

    Its size is bounded, since `plain` holds all that a faster program may do without. Where a whole
    batch's forward pass writes more than `COMPARED_ELEMENTS`, `plain` takes it in parts, and in
    float64 fewer prompts are compared, but two at least, which may mix. In float64 as many replicas
    are compared as have that many parameters, but two at least, which may be one program. So every
    size at which a program takes another path is compared: a form is chosen for the batch that it
    will train on, and programs always take that batch whole.

    In the run's dtype, rounding may carry one unit of one prompt across the kink of a ReLU, which
    changes the gradient by far more than rounding. A mismatch counts if it is there at slightly
    moved parameters too.
    """

    def __init__(
        self,
        replicas: Replicas,
        batch: Batch,
        loss: Loss,
        *,
        autocast: torch.dtype | None = None,
    ) -> None:
        """Compute the reference on `batch`, each field (R, B, …)."""
        self.replicas, self.batch, self.loss, self.autocast = replicas, batch, loss, autocast
        fitting, size = prompts_at_once(replicas, loss, batch), batch.target.shape[1]
        self.parts = next(n for n in range(1, size + 1) if size % n == 0 and size // n <= fitting)
        self.whole = self._in_dtype(self._plain, replicas)
        few = replicas.first(max(2, COMPARED_ELEMENTS // replicas.flat.shape[1]))
        sample = prompts_of(batch, 0, min(SAMPLE, max(2, fitting)))
        self.sample = _to_float64(replicas_of(sample, slice(few.count)))
        self.exact: list[tuple[Replicas, Results]] = []
        with default_dtype(torch.float64):
            for exact in _in_float64(few):
                try:
                    plain = partial(Plain, loss=loss)
                    self.exact.append((exact, _run(plain, exact, self.sample)))
                except Exception as error:
                    if is_out_of_memory(error):
                        raise
                    return  # a model of one dtype: the comparison in that dtype has to do

    def find_mismatch(self, make: MakeProgram, *, in_float64: bool = True) -> str | None:
        """Return why the program that `make` makes can't be used, or None where it agrees.

        Raises NoFormError where the module has no form for the program, and torch's error where the
        program does not fit in memory beside the reference.
        """
        if not self.whole.finite.any():
            return "plain's losses or gradients are not finite, so nothing can be compared"
        try:
            with default_dtype(torch.float64):
                for replicas, expected in self.exact if in_float64 else ():
                    results = _run(make, replicas, self.sample)
                    mismatch = _compare(results, expected, IN_FLOAT64, replicas)
                    if mismatch is not None:
                        return mismatch
            results = self._in_dtype(make, self.replicas)
        except NoFormError:
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            return first_line(error)
        mismatch = self._mismatch_in_dtype(results, self.whole)
        if mismatch is None or (self._leaves_state(results) and self._is_rounding(results)):
            return None
        nearby = _moved(self.replicas.copy(), NUDGE)
        expected = self._in_dtype(self._plain, nearby)
        finite = all((r.finite >= self.whole.finite).all() for r in (results, expected))
        if not (in_float64 and self.exact and finite):
            return mismatch
        return self._mismatch_in_dtype(self._in_dtype(make, nearby), expected)

    def _mismatch_in_dtype(self, results: Results, expected: Results) -> str | None:
        """How a program's results on the whole batch differ, or None."""
        tolerance = IN_FLOAT64 if self.replicas.flat.dtype == torch.float64 else IN_DTYPE
        if self.autocast is not None:
            tolerance = UNDER_AUTOCAST
        if self.parts > 1:  # plain's parts update batch statistics one after another
            results = results._replace(state=expected.state)
        return _compare(results, expected, tolerance)

    def _plain(self, replicas: Replicas) -> GradientProgram:
        """The reference on the whole batch."""
        program = Plain(replicas, self.loss)
        return program if self.parts == 1 else Accumulated(program, self.parts)

    def _in_dtype(self, make: MakeProgram, replicas: Replicas) -> Results:
        """The results on the whole batch as in training."""
        device, autocast = self.batch.target.device, self.autocast
        if autocast is None:
            return _run(make, replicas, self.batch)
        return _run(lambda r: Autocast(make(r), device, autocast), replicas, self.batch)

    def _leaves_state(self, results: Results) -> bool:
        """Whether a program's forward pass leaves what plain's leaves, as far as that is known."""
        whole = self.whole.finite
        return self.parts > 1 or _state_mismatch(results, self.whole, whole, IN_DTYPE) is None

    def _is_rounding(self, results: Results) -> bool:
        """Whether a mismatch is rounding, as it is where the model starts at an exact solution."""
        if not self.exact:
            return False
        few = self.exact[0][0]
        batch = _to_float64(replicas_of(self.batch, slice(few.count)))
        with default_dtype(torch.float64):
            exact = _run(self._plain, few, batch)
        return all(
            bool((_norms(a[: len(c)] - c) <= ROUNDING * _norms(b[: len(c)] - c)).all())
            for a, b, c in zip(results[:2], self.whole[:2], exact[:2], strict=True)
        )


def _run(make: MakeProgram, replicas: Replicas, batch: Batch) -> Results:
    """The results of a program on a copy of the replicas."""
    trial = replicas.copy()
    losses, gradients = make(trial)(batch)
    state = {"the parameters": trial.flat, **trial.frozen_and_buffers}
    return Results(losses.clone(), gradients.clone(), state)


def _in_float64(replicas: Replicas) -> list[Replicas]:
    """The replicas at their parameters and at moved ones."""
    return [replicas.copy(torch.float64), _moved(replicas.copy(torch.float64), MOVE)]


def _moved(replicas: Replicas, by: float) -> Replicas:
    """The replicas, their parameters moved by noise of that standard deviation."""
    # A generator of its own: the comparison must not move the training's random numbers.
    noise = torch.randn(replicas.flat.shape, generator=torch.Generator().manual_seed(0))
    replicas.flat = replicas.flat + by * noise.to(replicas.flat)
    return replicas


def _compare(
    results: Results, expected: Results, tolerance: float, replicas: Replicas | None = None
) -> str | None:
    """Return how results differ, or None; gradients by parameter where `replicas` are given.

    Replicas with a value that is not finite are left out: moved parameters may overflow.
    """
    finite = expected.finite
    losses, losses_b = results.losses[finite], expected.losses[finite]
    gradients, gradients_b = results.gradients[finite], expected.gradients[finite]
    # A loss is compared relative to itself: training may start at tiny losses.
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
    return _state_mismatch(results, expected, finite, tolerance)


def _state_mismatch(
    results: Results, expected: Results, finite: Tensor, tolerance: float
) -> str | None:
    """Return which parameter or buffer of finite replicas a forward pass leaves otherwise."""
    for name, after in expected.state.items():
        state, state_b = _real(results.state[name][finite]), _real(after[finite])
        # Masks hold infinities, of which the difference is NaN.
        same = (state == state_b) | (state.isnan() & state_b.isnan())
        difference = torch.where(same, 0, state - state_b)
        size = _norms(torch.where(state_b.isfinite(), state_b, 0))
        if not (_norms(difference) <= tolerance * size).all():
            return f"a forward pass leaves {name} unlike plain's"
    return None


def _real(values: Tensor) -> Tensor:
    """Counts as real numbers."""
    return values if values.is_floating_point() else values.double()


def _norms(rows: Tensor) -> Tensor:
    """Return the norm of each row, (R, …) → (R,), also for R = 0."""
    norms: Tensor = rows.reshape(len(rows), math.prod(rows.shape[1:])).norm(dim=1)
    return norms


def _to_float64(batch: Batch) -> Batch:
    def double(value: Tensor) -> Tensor:
        return value.double() if value.is_floating_point() else value

    return Batch(map_tensors(double, batch.prompt), double(batch.target))
