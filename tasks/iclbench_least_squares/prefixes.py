"""The task `least-squares-prefixes`: every prefix of the examples is a problem (D.2.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from iclbench import (
    Axis,
    Batch,
    Draws,
    Primary,
    Regression,
    Signature,
    exact_matmul,
)

from .base import LeastSquaresTask
from .problems import LeastSquaresConfig, problems_from


class LeastSquaresPrefixes(LeastSquaresTask[LeastSquaresConfig]):
    """Predict w*ᵀx_{k+1} from the first k examples, for every k = 0…N (Liu et al., D.2.1).

    Tokens are interleaved, x₁, y₁e₁, …, x_N, y_N e₁, x_query, so S = 2N + 1 and d = D. The answers
    are read at the inputs, 0, 2, …, 2N, and the model must be causal. Noise affects y and not the
    targets.
    """

    name = "least-squares-prefixes"
    version = 2
    Config = LeastSquaresConfig
    errors = {"squared_error": "squared", "prefix_error": "squared"}
    floor_summary = (
        "Least squares on each prefix of the rounded prompt, solved exactly: the minimum-norm "
        "solution for k < D; from k = D on, the examples determine the answer. With noise, or with "
        "N < D, it is the Bayes predictor: the posterior mean of w* ~ N(0, I)."
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
    def undetermined_shifts(self) -> frozenset[str]:
        """`signs`: short prefixes often hold an input twice, or with the other sign."""
        return frozenset({"signs"})

    @property
    def axes(self) -> dict[str, Axis]:
        """prefix_error runs over the prefixes k = 0…N."""
        return {"prefix_error": Axis("prefix", tuple(map(float, range(self.config.examples + 1))))}

    def arrange(self, draws: Draws) -> Batch:
        """Tokens (B, 2N+1, D), inputs and values in turn; the targets are without noise."""
        problems = problems_from(self.config, draws)
        # y e₁: a value takes a whole token, in its first feature (D.2.1).
        prompt = Regression.interleaved(problems.x, problems.y)
        return Batch(prompt, problems.clean, {"w": problems.w})

    def answer(self, batch: Batch) -> Tensor:
        """w*ᵀx of every rounded input, exact products."""
        return exact_matmul(batch.prompt.inputs(), batch.truth["w"])

    def mask_after(self, prompt: Regression, position: int) -> Regression:
        """Replaces the value after that prefix, and later inputs and their values."""
        return prompt.masked_after(position)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """prefix_error (B, N+1), and squared_error (B,), its last: the query after N examples."""
        errors = (prediction - batch.target).squeeze(2).square()
        return {"squared_error": errors[:, -1], "prefix_error": errors}

    def exact_answer(self, batch: Batch) -> Tensor:
        """Least squares of least norm on each rounded prefix; see `posterior_mean`."""
        prompt, inputs = batch.prompt, batch.prompt.inputs()
        answers = [
            # From the first k examples, of which there are none for k = 0: the answer is 0 then.
            self.posterior_mean(prompt.x[:, :k], prompt.y[:, :k], inputs[:, k : k + 1])
            for k in range(inputs.shape[1])
        ]
        return torch.cat(answers, dim=1)
