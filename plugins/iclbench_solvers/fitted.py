"""Functions that are fitted to each context by gradient descent."""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Config, torch_generator

from .solver import Examples, RegressionSolver


class NetworkConfig(Config):
    """The network and its training."""

    hidden: int = Field(100, ge=1, description="number of hidden units")
    steps: int = Field(100, ge=0, description="number of Adam steps, each on all examples")
    learning_rate: float = Field(5e-3, gt=0, description="learning rate of Adam")
    seed: int = Field(
        0, ge=0, description="seed of the initial weights; the same for every context"
    )


class TwoLayerNetwork(RegressionSolver):
    """A ReLU network with biases, trained on each context by Adam on the mean squared error.

    Garg et al. (2022) train 100 steps at 5e-3 on batches of 100 examples; here every step sees all
    examples. Initial weights are uniform on ±1/√(fan-in), as torch's linear layers. The networks of
    all contexts are trained as one batch.
    """

    name = "two-layer-network"
    Config = NetworkConfig

    def answer(self, examples: Examples, query: Tensor, config: NetworkConfig) -> Tensor:
        """The values (B, Q, K) at query (B, Q, D); 0 without examples."""
        x, y = examples.x, examples.y
        if x.shape[1] == 0:
            return query.new_zeros(*query.shape[:2], y.shape[2])
        with torch.enable_grad():
            weights = _initial(x, y.shape[2], config)
            optimizer = torch.optim.Adam(weights, lr=config.learning_rate)
            for _ in range(config.steps):
                errors = (_network(x, weights) - y).square().mean(dim=(1, 2))
                # A sum over contexts, so that each is trained as if it were alone.
                gradients = torch.autograd.grad(errors.sum(), weights)
                for weight, gradient in zip(weights, gradients, strict=True):
                    weight.grad = gradient
                optimizer.step()
        # The answer depends on the query alone from here on.
        return _network(query, [weight.detach() for weight in weights])


def _initial(x: Tensor, outputs: int, config: NetworkConfig) -> list[Tensor]:
    """Weights and biases of both layers, a copy for each context."""
    generator = torch_generator("cpu", "two-layer network", config.seed)
    dim = x.shape[2]

    def layer(inputs: int, *shape: int) -> Tensor:
        uniform = torch.rand(*shape, generator=generator, dtype=torch.float64)
        values = (2.0 * uniform - 1.0) / math.sqrt(inputs)
        return values.to(x).expand(len(x), *shape).clone().requires_grad_()

    hidden = config.hidden
    return [
        layer(dim, dim, hidden),
        layer(dim, 1, hidden),
        layer(hidden, hidden, outputs),
        layer(hidden, 1, outputs),
    ]


def _network(x: Tensor, weights: list[Tensor]) -> Tensor:
    first, first_bias, second, second_bias = weights
    return (x @ first + first_bias).relu() @ second + second_bias
