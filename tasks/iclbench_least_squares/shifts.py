"""Evaluation under shift for the regression tasks: the nine of Garg et al. (2022), and others.

Garg et al. (arXiv 2208.01066, section 4) train on x, w* ~ N(0, I) and evaluate on other
distributions of the examples, of the query, and of their scales. Here D is the dimension and N the
number of examples. Where a query is changed, it is the last one, after all N examples; the inputs
of shorter prefixes are the examples themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from iclbench import Draws, Random, Shift, torch_generator

from .problems import LeastSquaresConfig

#: Factors on the inputs and on the values.
SCALES = {"third": 1 / 3, "half": 0.5, "double": 2.0, "triple": 3.0}


def regression_shifts(config: LeastSquaresConfig) -> dict[str, Shift]:
    """The shifts that are defined for a configuration, by name."""
    shifts = {
        "quadrants": Shift("examples of one random quadrant; a query anywhere", change=_quadrants),
        "opposite-quadrants": Shift(
            "examples of one random quadrant; the query in the opposite one", change=_opposite
        ),
        "overlapping": Shift("the query is one of the examples", change=_overlapping),
        "skewed": Shift(
            "inputs of covariance UΛ²Uᵀ, λᵢ ∝ 1/i, scaled to the trace D", change=_skewed(config)
        ),
        "uniform": Shift("inputs uniform on [−√3, √3]ᴰ", change=_inputs(_uniform)),
        "signs": Shift("inputs of ±1", change=_inputs(torch.sign)),
        "heavy-tailed": Shift(
            "inputs of Student's t with 3 degrees of freedom, of variance 1", change=_heavy_tailed
        ),
    }
    if config.dim > 1:
        summary = "inputs in a random subspace of half the dimensions, scaled to the trace D"
        shifts["half-subspace"] = Shift(summary, change=_half_subspace(config))
    if config.examples < config.dim:
        # From N = D on the examples span the space, and no query is orthogonal to all.
        shifts["orthogonal"] = Shift(
            "a query orthogonal to all examples, of its own norm", change=_orthogonal
        )
    for name, factor in SCALES.items():
        shifts[f"inputs-{name}"] = Shift(
            f"inputs times {factor:.3g}", change=_scaled("x", factor), scales_targets=True
        )
        shifts[f"values-{name}"] = Shift(
            f"w* times {factor:.3g}", change=_scaled("w", factor), scales_targets=True
        )
    shifts |= _by_arguments(config)
    return dict(sorted(shifts.items()))


def _by_arguments(config: LeastSquaresConfig) -> dict[str, Shift]:
    """Shifts that only set arguments of the task: noise, conditioning, the number of examples."""
    shifts = {}
    if config.noise != 1.0:
        shifts["noisy"] = Shift("values with noise of deviation 1", {"noise": 1.0})
    if config.examples >= config.dim > 1:
        for power in (1, 2, 3):
            if config.condition_number != 10.0**power:
                shifts[f"condition-{10**power}"] = Shift(
                    f"designs with the condition number {10**power}",
                    {"condition_number": 10.0**power},
                )
    fewer, more = max(1, config.examples // 2), 2 * config.examples
    if fewer < config.examples and (config.condition_number is None or fewer >= config.dim):
        shifts["examples-half"] = Shift(f"{fewer} examples", {"examples": fewer})
    shifts["examples-double"] = Shift(f"{more} examples", {"examples": more})
    return shifts


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


def _orthogonal(draws: Draws, random: Random) -> Draws:
    x = draws["x"]
    query = x[:, -1:]
    # The columns of Q span the N < D examples.
    basis = torch.linalg.qr(x[:, :-1].mT)[0]
    rest = query - query @ basis @ basis.mT
    length = torch.linalg.vector_norm(query, dim=2, keepdim=True)
    rest = rest * (length / torch.linalg.vector_norm(rest, dim=2, keepdim=True))
    return {**draws, "x": torch.cat([x[:, :-1], rest], dim=1)}


def _half_subspace(config: LeastSquaresConfig) -> Callable[[Draws, Random], Draws]:
    values = torch.zeros(config.dim, dtype=torch.float64)
    values[: config.dim // 2] = 1.0
    return _transformed(config, values)


def _skewed(config: LeastSquaresConfig) -> Callable[[Draws, Random], Draws]:
    return _transformed(config, 1.0 / torch.arange(1, config.dim + 1, dtype=torch.float64))


def _transformed(config: LeastSquaresConfig, values: Tensor) -> Callable[[Draws, Random], Draws]:
    """x → xT with T = √(D/Σλ²) U diag(λ) Uᵀ; U is drawn once, from `task_seed`."""
    generator = torch_generator("cpu", "shift of the covariance", config.task_seed)
    gaussian = torch.randn(config.dim, config.dim, generator=generator, dtype=torch.float64)
    rotation = torch.linalg.qr(gaussian)[0]
    scaled = values * (config.dim / values.square().sum()).sqrt()
    matrix = rotation @ torch.diag(scaled) @ rotation.mT
    return _inputs(lambda x: x @ matrix.to(x))


def _inputs(function: Callable[[Tensor], Tensor]) -> Callable[[Draws, Random], Draws]:
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


def _scaled(name: str, factor: float) -> Callable[[Draws, Random], Draws]:
    return lambda draws, random: {**draws, name: factor * draws[name]}
