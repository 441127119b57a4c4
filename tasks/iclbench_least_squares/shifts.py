"""Evaluation under shift for the regression tasks: the nine of Garg et al. (2022), and others.

Those of the inputs alone are `iclbench.input_shifts`. Here D is the dimension and N the number of
examples. Where a query is changed, it is the last one, after all N examples; the inputs of shorter
prefixes are the examples themselves.
"""

from __future__ import annotations

import torch

from iclbench import Draws, Random, Shift, input_shifts, value_shifts

from .problems import LeastSquaresConfig

#: Shifts of the inputs that keep the condition number of a design.
KEPT, SCALES = {"overlapping"}, "inputs-"


def regression_shifts(config: LeastSquaresConfig) -> dict[str, Shift]:
    """The shifts that are defined for a configuration, by name."""
    shifts = input_shifts(config.dim, config.task_seed)
    if config.examples < config.dim:
        # From N = D on the examples span the space, and no query is orthogonal to all.
        shifts["orthogonal"] = Shift(
            "a query orthogonal to all examples, with its norm kept", change=_orthogonal
        )
    if config.condition_number is not None:
        # Other inputs would not have the condition number.
        shifts = {name: s for name, s in shifts.items() if name in KEPT or name.startswith(SCALES)}
    shifts |= value_shifts("w", "w*") | _by_arguments(config)
    return dict(sorted(shifts.items()))


def _by_arguments(config: LeastSquaresConfig) -> dict[str, Shift]:
    """Shifts that only set arguments of the task: noise, conditioning, the number of examples."""
    shifts = {}
    if config.noise != 1.0:
        shifts["noisy"] = Shift("noise with standard deviation 1 on the values", {"noise": 1.0})
    if config.examples >= config.dim > 1:
        for power in (1, 2, 3):
            if config.condition_number != 10.0**power:
                shifts[f"condition-{10**power}"] = Shift(
                    f"design matrices with condition number {10**power}",
                    {"condition_number": 10.0**power},
                )
    fewer, more = max(1, config.examples // 2), 2 * config.examples
    if fewer < config.examples and (config.condition_number is None or fewer >= config.dim):
        shifts["examples-half"] = Shift(f"{fewer} examples", {"examples": fewer})
    shifts["examples-double"] = Shift(f"{more} examples", {"examples": more})
    return shifts


def _orthogonal(draws: Draws, random: Random) -> Draws:
    x = draws["x"]
    query = x[:, -1:]
    # The columns of Q span the N < D examples.
    basis = torch.linalg.qr(x[:, :-1].mT)[0]
    rest = query - query @ basis @ basis.mT
    length = torch.linalg.vector_norm(query, dim=2, keepdim=True)
    rest = rest * (length / torch.linalg.vector_norm(rest, dim=2, keepdim=True))
    return {**draws, "x": torch.cat([x[:, :-1], rest], dim=1)}
