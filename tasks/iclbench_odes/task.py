"""The task `ode-operator`: a differential equation that only examples show (Liu et al. 2025)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from iclbench import (
    Batch,
    Draws,
    FloorKind,
    Primary,
    Random,
    Regression,
    Shift,
    Signature,
    Statistic,
    Task,
)

from . import chebyshev
from .config import OdeConfig
from .equations import coefficients, iterated_solution, problem_of, solution
from .forcing import basis, conditional_mean, terms
from .recipes import PAPER, QUICK
from .shifts import ode_shifts


class OdeOperator(Task[OdeConfig]):
    """Predict u(t*) for a function c and u(0), from examples of one equation and one t*.

    u' = a₁c + a₂cu + a₃u + a₄ on [−1, 1], or u'' = a₁c + a₂u' + a₃u + a₄ with u'(0) = 0. The
    coefficients and t* ~ U(−1, 1) are drawn for each prompt. c is a Gaussian process and u(0) is
    uniform; both are drawn for each example. A token is c at equispaced points, u(0), 1 and u(t*),
    which is 0 in the query, the last token: S = N + 1, d = 24. Nothing in the prompt shows t* or
    the coefficients.
    """

    name = "ode-operator"
    version = 1
    Config = OdeConfig
    recipes = {"paper": PAPER, "quick": QUICK}
    # In float32 c would have a rounding of its own, and a solution the system's.
    exact = True
    unrounded = frozenset({"c_at_nodes", "coefficients", "t"})
    replica_args = frozenset({"equation", "gp_length", "scale", "u0_scale"})
    floor_name = "true operator"
    floor_summary = (
        "The true equation and t*, applied to the query as the prompt shows it: to the mean of c "
        "given its rounded values. Where u(t*) is linear in c (`forced`, `second-order`), this is "
        "the Bayes predictor given the equation; elsewhere nearly so."
    )

    @property
    def primary(self) -> Primary:
        """The squared error of u(t*)."""
        return Primary("squared_error")

    @property
    def floor_kind(self) -> FloorKind:
        """`bound`: see `floor_summary`."""
        return "bound"

    @property
    def statistic(self) -> Statistic:
        """The mean of the digits: errors span orders of magnitude, and few of them are the mean."""
        return "mean digits"

    @property
    def signature(self) -> Signature:
        """S = N + 1 tokens of c, u(0), 1 and u(t*), read at the last."""
        c = self.config
        return Signature(
            prompt=Regression,
            target="query",
            length=c.examples + 1,
            input_width=c.features + 1,
            output_width=1,
            readout=(c.examples,),
            shapes={
                "x": (c.examples, c.features),
                "y": (c.examples, 1),
                "query": (1, c.features),
            },
        )

    @property
    def shifts(self) -> dict[str, Shift]:
        """Other lengths of c, coefficients, initial values and equations."""
        return ode_shifts(self.config)

    @property
    def places(self) -> Tensor:
        """The points at which c is shown, float64."""
        return torch.linspace(-1.0, 1.0, self.config.points, dtype=torch.float64)

    def draw(self, random: Random) -> Draws:
        """c, c_at_nodes (B, N + 1, …), u0 (B, N + 1), coefficients in [−1, 1] (B, 4), t (B,)."""
        c, count = self.config, self.config.examples + 1
        z = random.normal("c", count, terms(c.gp_length))
        both = torch.cat([self.places, chebyshev.points()])
        values = z @ basis(both, c.gp_length).to(z).mT
        return {
            "c": values[..., : c.points],
            # The same function where the equation is solved.
            "c_at_nodes": values[..., c.points :],
            "u0": c.u0_scale * (2.0 * random.uniform("u0", count) - 1.0),
            "coefficients": 2.0 * random.uniform("coefficients", 4) - 1.0,
            "t": 2.0 * random.uniform("t") - 1.0,
        }

    def arrange(self, draws: Draws) -> Batch:
        """Tokens (B, N + 1, features + 1), the query's last feature 0; the target is its u(t*)."""
        c = self.config
        a = coefficients(c.equation, draws["coefficients"], c.scale)
        u = solution(problem_of(c.equation, a, draws["c_at_nodes"], draws["u0"]))
        values = u @ chebyshev.interpolation(draws["t"]).unsqueeze(2)
        start = draws["u0"].unsqueeze(2)
        x = torch.cat([draws["c"], start, torch.ones_like(start)], dim=2)
        shown = torch.cat([values[:, :-1], torch.zeros_like(values[:, -1:])], dim=1)
        prompt = Regression(torch.cat([x, shown], dim=2), x[:, :-1], values[:, :-1], x[:, -1:])
        return Batch(
            prompt, values[:, -1:], {"coefficients": draws["coefficients"], "t": draws["t"]}
        )

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The squared error, (B,)."""
        return mse_loss(prediction, target, reduction="none").mean(dim=(1, 2))

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """squared_error, (B,)."""
        return {"squared_error": self.loss(prediction, batch.target)}

    def reference(self, batch: Batch) -> Tensor:
        """u(t*) of the true equation at the mean of c given the query's values, in the dtype."""
        c, query = self.config, batch.prompt.query
        # A rounding error is uniform within half a unit, at most ε/2 of the number.
        noise = torch.finfo(query.dtype).eps ** 2 / 24.0
        nodes = tuple(chebyshev.points().tolist())
        weights = conditional_mean(tuple(self.places.tolist()), nodes, c.gp_length, noise)
        mean = query[..., : c.points].double() @ weights.mT
        a = coefficients(c.equation, batch.truth["coefficients"], c.scale)
        problem = problem_of(c.equation, a, mean, query[..., c.points].double())
        u = iterated_solution(problem) @ chebyshev.interpolation(batch.truth["t"]).unsqueeze(2)
        return u.to(query.dtype)

    def with_query(self, prompt: Any, query: Tensor) -> Any:
        """The prompt with another query (B, 1, features), also in the last token."""
        last = torch.cat([query, prompt.tokens[:, -1:, query.shape[2] :]], dim=2)
        tokens = torch.cat([prompt.tokens[:, :-1], last], dim=1)
        return prompt._replace(tokens=tokens, query=query)
