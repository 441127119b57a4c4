"""Shifts of the inputs of regression tasks: those of Garg et al. (2022), and others.

Garg et al. (arXiv 2208.01066, section 4) train on x ~ N(0, I) and evaluate on other distributions
of the examples, of the query, and of their scales. Here D is the dimension and N the number of
examples. Where a query is changed, it is the last input, after all N examples.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from .draws import Draws, Random
from .random import torch_generator
from .shift import Shift

Change = Callable[[Draws, Random], Draws]

#: Factors on the inputs and on the values.
SCALES = {"third": 1 / 3, "half": 0.5, "double": 2.0, "triple": 3.0}


def input_shifts(dim: int, task_seed: int, *, scales_targets: bool = True) -> dict[str, Shift]:
    """Shifts of the draw `x` (B, N + 1, D), the query last, by name.

    Matrices are drawn once, from `task_seed`. `scales_targets` says whether targets grow with x.
    """
    shifts = {
        "quadrants": Shift("examples from one random quadrant; any query", change=_quadrants),
        "opposite-quadrants": Shift(
            "examples from one random quadrant; the query from the opposite one", change=_opposite
        ),
        "overlapping": Shift("the query is one of the examples", change=_overlapping),
        "uniform": Shift("inputs uniform on [−√3, √3]ᴰ", change=_inputs(_uniform)),
        "signs": Shift("inputs with entries ±1", change=_inputs(torch.sign)),
        "heavy-tailed": Shift(
            "inputs from Student's t with 3 degrees of freedom, scaled to variance 1",
            change=_heavy_tailed,
        ),
    }
    if dim > 1:
        shifts["skewed"] = Shift(
            "inputs with covariance UΛ²Uᵀ, λᵢ ∝ 1/i, scaled to trace D",
            change=_skewed(dim, task_seed),
        )
        summary = "inputs in a random subspace of half the dimensions, scaled to trace D"
        shifts["half-subspace"] = Shift(summary, change=_half_subspace(dim, task_seed))
    for name, factor in SCALES.items():
        shifts[f"inputs-{name}"] = Shift(
            f"inputs multiplied by {factor:.3g}",
            change=_scaled("x", factor),
            scales_targets=scales_targets,
        )
    return shifts


def value_shifts(draw: str, symbol: str) -> dict[str, Shift]:
    """Shifts of the scale of the values, which are linear in a draw; `symbol` names it to users."""
    return {
        f"values-{name}": Shift(
            f"{symbol} multiplied by {factor:.3g}",
            change=_scaled(draw, factor),
            scales_targets=True,
        )
        for name, factor in SCALES.items()
    }


def value_scale(shift: str) -> float:
    """The factor on the values under a shift of this name: 1 for all but `value_shifts`."""
    kind, _, name = shift.partition("-")
    return SCALES[name] if kind == "values" else 1.0


def _scaled(name: str, factor: float) -> Change:
    return lambda draws, random: {**draws, name: factor * draws[name]}


def _quadrants(draws: Draws, random: Random) -> Draws:
    x = draws["x"]
    signs = _random_signs(x, random)
    return {**draws, "x": torch.cat([x[:, :-1].abs() * signs, x[:, -1:]], dim=1)}


def _opposite(draws: Draws, random: Random) -> Draws:
    x = draws["x"]
    signs = _random_signs(x, random)
    return {**draws, "x": torch.cat([x[:, :-1].abs() * signs, -x[:, -1:].abs() * signs], dim=1)}


def _random_signs(x: Tensor, random: Random) -> Tensor:
    """A quadrant for each prompt, (B, 1, D)."""
    uniform = random.uniform("quadrant", 1, x.shape[2])
    return torch.where(uniform < 0.5, -1.0, 1.0).to(x)


def _overlapping(draws: Draws, random: Random) -> Draws:
    x = draws["x"]
    chosen = random.integers("overlapping", x.shape[1] - 1)
    query = x[torch.arange(len(x)), chosen]
    return {**draws, "x": torch.cat([x[:, :-1], query[:, None]], dim=1)}


def _half_subspace(dim: int, task_seed: int) -> Change:
    values = torch.zeros(dim, dtype=torch.float64)
    values[: dim // 2] = 1.0
    return _transformed(values, task_seed)


def _skewed(dim: int, task_seed: int) -> Change:
    return _transformed(1.0 / torch.arange(1, dim + 1, dtype=torch.float64), task_seed)


def _transformed(values: Tensor, task_seed: int) -> Change:
    """x → xT with T = √(D/Σλ²) U diag(λ) Uᵀ; U is drawn once, from `task_seed`."""
    dim = len(values)

    @functools.cache
    def matrix() -> Tensor:
        generator = torch_generator("cpu", "shift of the covariance", task_seed)
        gaussian = torch.randn(dim, dim, generator=generator, dtype=torch.float64)
        rotation = torch.linalg.qr(gaussian)[0]
        scaled = values * (dim / values.square().sum()).sqrt()
        transformation: Tensor = rotation @ torch.diag(scaled) @ rotation.mT
        return transformation

    return _inputs(lambda x: x @ matrix().to(x))


def _inputs(function: Callable[[Tensor], Tensor]) -> Change:
    """The inputs, queries included, through a function."""
    return lambda draws, random: {**draws, "x": function(draws["x"])}


def _uniform(x: Tensor) -> Tensor:
    """Normal numbers as uniform ones of variance 1, by their distribution function."""
    distribution: Tensor = torch.special.ndtr(x)
    return 3**0.5 * (2.0 * distribution - 1.0)


def _heavy_tailed(draws: Draws, random: Random) -> Draws:
    x = draws["x"]
    # t₃ = z/√(χ²₃/3), whose variance is 3.
    squares = random.normal("tails", *x.shape[1:], 3).square().sum(dim=3)
    return {**draws, "x": x * squares.rsqrt()}
