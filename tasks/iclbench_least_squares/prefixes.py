"""The task `least-squares-prefixes`: every prefix of the examples is a problem (D.2.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from iclbench import Batch, Draws, PrefixTask, exact_matmul

from .base import LeastSquaresTask
from .problems import LeastSquaresConfig, problems_from


class LeastSquaresPrefixes(LeastSquaresTask[LeastSquaresConfig], PrefixTask[LeastSquaresConfig]):
    """Predict w*ᵀx_{k+1} from the first k examples, for every k = 0…N (Liu et al., D.2.1).

    Tokens are interleaved, x₁, y₁e₁, …, x_N, y_N e₁, x_query, so S = 2N + 1 and d = D. The answers
    are read at the inputs, 0, 2, …, 2N, and the model must be causal. Noise affects y and not the
    targets.
    """

    name = "least-squares-prefixes"
    version = 2
    Config = LeastSquaresConfig
    floor_summary = (
        "Least squares on each prefix of the rounded prompt, solved exactly: the minimum-norm "
        "solution for k < D; from k = D on, the examples determine the answer. With noise, or with "
        "N < D, it is the Bayes predictor: the posterior mean of w* ~ N(0, I)."
    )

    @property
    def undetermined_shifts(self) -> frozenset[str]:
        """`signs`: short prefixes often hold an input twice, or with the other sign."""
        return frozenset({"signs"})

    def arrange(self, draws: Draws) -> Batch:
        """Tokens (B, 2N+1, D), inputs and values in turn; the targets are without noise."""
        problems = problems_from(self.config, draws)
        # y e₁: a value takes a whole token, in its first feature (D.2.1).
        return Batch(self.prompt_of(problems.x, problems.y), problems.clean, {"w": problems.w})

    def answer(self, batch: Batch) -> Tensor:
        """w*ᵀx of every rounded input, exact products."""
        return exact_matmul(batch.prompt.inputs(), batch.truth["w"])

    def exact_answer(self, batch: Batch) -> Tensor:
        """Least squares of least norm on each rounded prefix; see `posterior_mean`."""
        prompt, inputs = batch.prompt, batch.prompt.inputs()
        answers = [
            # From the first k examples, of which there are none for k = 0: the answer is 0 then.
            self.posterior_mean(prompt.x[:, :k], prompt.y[:, :k], inputs[:, k : k + 1])
            for k in range(inputs.shape[1])
        ]
        return torch.cat(answers, dim=1)
