"""The task `least-squares-prefixes`: every prefix of the examples is a problem (D.2.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from iclbench import Axis, Batch, Draws, Primary, Regression, Signature, exact_matmul

from .base import LeastSquaresTask
from .problems import LeastSquaresConfig, problems_from


class LeastSquaresPrefixes(LeastSquaresTask[LeastSquaresConfig]):
    """Predict w*ᵀx_{k+1} from the first k examples, for every k = 0…N (least_squares, D.2.1).

    Tokens are interleaved, x₁, y₁e₁, …, x_N, y_N e₁, x_query, so S = 2N + 1 and d = D. The answers
    are read at the inputs, 0, 2, …, 2N, and the model must be causal. Noise affects y and not the
    targets.
    """

    name = "least-squares-prefixes"
    version = 2
    Config = LeastSquaresConfig
    errors = {"squared_error": "squared", "prefix_error": "squared"}
    floor_summary = (
        "Least squares on each prefix of the rounded prompt, solved exactly, of least norm while "
        "k < D; `exact` is said of all N examples. With noise, or with N < D, it is `bayes`: the "
        "posterior mean of w* ~ N(0, I)."
    )

    @property
    def primary(self) -> Primary:
        """The squared error at the query, after all N examples, as in `least-squares`."""
        return Primary("squared_error")

    @property
    def signature(self) -> Signature:
        """S = 2N + 1 tokens of width D, read at every input."""
        c = self.config
        return Signature(
            prompt=Regression,
            target="prefixes",
            length=2 * c.examples + 1,
            input_width=c.dim,
            output_width=1,
            readout=tuple(range(0, 2 * c.examples + 1, 2)),
            # Each input is followed by its answer, so a model that looks ahead would read it.
            causal=True,
            shapes=self.shapes(),
        )

    @property
    def axes(self) -> dict[str, Axis]:
        """prefix_error runs over the prefixes k = 0…N."""
        return {"prefix_error": Axis("prefix", tuple(map(float, range(self.config.examples + 1))))}

    def arrange(self, draws: Draws) -> Batch:
        """Tokens (B, 2N+1, D), inputs and values in turn; the targets are without noise."""
        problems = problems_from(self.config, draws)
        x, y = problems.x, problems.y
        batch, inputs, dim = x.shape
        # y e₁: a value takes a whole token, in its first feature (D.2.1).
        values = torch.nn.functional.pad(y, (0, dim - 1))
        # Stacking along a new dimension after the examples' interleaves them: x₁, y₁e₁, x₂, …
        pairs = torch.stack([x[:, :-1], values], dim=2).view(batch, 2 * (inputs - 1), dim)
        tokens = torch.cat([pairs, x[:, -1:]], dim=1)
        return Batch(Regression(tokens, x[:, :-1], y, x[:, -1:]), problems.clean, {"w": problems.w})

    def answer(self, batch: Batch) -> Tensor:
        """w*ᵀx of every rounded input, exact products."""
        return exact_matmul(_inputs(batch.prompt), batch.truth["w"])

    def mask_after(self, prompt: Regression, position: int) -> Regression:
        """Replaces the value after that prefix, and later inputs and their values."""

        def replaced(t: Tensor, start: int) -> Tensor:
            # 1 − 3t changes every value but ¼, also zeros.
            return torch.cat([t[:, :start], 1.0 - 3.0 * t[:, start:]], dim=1)

        k = position
        # The last read-out is the query's own, which it may see.
        last = prompt.query if k == self.config.examples else 1.0 - 3.0 * prompt.query
        # Read-out k is token 2k; the next token is its answer.
        tokens = replaced(prompt.tokens, 2 * k + 1)
        return Regression(tokens, replaced(prompt.x, k + 1), replaced(prompt.y, k), last)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """prefix_error (B, N+1), and squared_error (B,), its last: the query after N examples."""
        errors = (prediction - batch.target).squeeze(2).square()
        return {"squared_error": errors[:, -1], "prefix_error": errors}

    def exact_answer(self, batch: Batch) -> Tensor:
        """Least squares of least norm on each rounded prefix; see `posterior_mean`."""
        prompt, inputs = batch.prompt, _inputs(batch.prompt)
        answers = [
            # From the first k examples, of which there are none for k = 0: the answer is 0 then.
            self.posterior_mean(prompt.x[:, :k], prompt.y[:, :k], inputs[:, k : k + 1])
            for k in range(inputs.shape[1])
        ]
        return torch.cat(answers, dim=1)


def _inputs(prompt: Regression) -> Tensor:
    """The inputs that an answer is asked for, (B, N+1, D)."""
    return torch.cat([prompt.x, prompt.query], dim=1)
