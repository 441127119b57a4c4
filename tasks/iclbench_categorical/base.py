"""What the categorical tasks share: categories of a softmax, pools, metrics and their bound."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from iclbench import Batch, Categorical, Primary, Signature, Task, TaskConfig, philox
from iclbench.prompts import map_tensors
from iclbench.randomness import torch_generator

from .recipes import PAPER, QUICK


class CategoricalConfig(TaskConfig):
    """The context, the categories, and what training sees."""

    dim: int = Field(10, ge=1, description="d, dimension of x")
    classes: int = Field(25, ge=2, description="C, number of categories")
    embedding: int = Field(5, ge=1, description="d', dimension of f and of the embeddings w_c")
    examples: int = Field(10, ge=1, description="N, examples in a context")
    queries: int = Field(1, ge=1, description="Q, inputs that are asked for in one prompt")
    pool: int | None = Field(
        None, ge=1, description="L, training contexts, the same for every run; null: always fresh"
    )


ConfigT = TypeVar("ConfigT", bound=CategoricalConfig)


class Draws(NamedTuple):
    """Raw draws behind n contexts of N + Q points, float64; `shape` is the function's own."""

    x: Tensor  # (n, N + Q, d), the inputs before they are rounded
    choice: Tensor  # (n, N + Q), uniform: picks each category
    order: Tensor  # (n, C), uniform: their order picks the context's categories
    shape: Tensor  # (n, …)


class CategoricalTask(Task[ConfigT]):
    """y ~ softmax(W_e f(x)), f another function in every context (categorical, eq. 1).

    W_e (C, d') is drawn once, from `task_seed`, N(0, 1); `truth` holds log p(c | x) of the queries.
    """

    recipes = {"paper": PAPER, "quick": QUICK}
    training_only = frozenset({"pool"})
    #: Name under which evaluation draws are derived.
    stream: str

    def __init__(self, config: ConfigT) -> None:
        super().__init__(config)
        self._pools: dict[tuple[torch.device, torch.dtype], Batch] = {}

    @property
    def primary(self) -> Primary:
        """The negative log-likelihood of the query's category."""
        return Primary("nll", "lower", "mean", "linear")

    @property
    def signature(self) -> Signature:
        """S = N + Q tokens (xᵢ, id of yᵢ), where a query has the id 0; read at the queries."""
        c = self.config
        return Signature(
            prompt=Categorical,
            target="class",
            length=c.examples + c.queries,
            input_width=c.dim,
            output_width=c.classes,
            readout=tuple(range(c.examples, c.examples + c.queries)),
            vocabulary=c.classes + 1,
            classes=c.classes,
            shapes={"x": (c.examples, c.dim), "y": (c.examples,), "query": (c.queries, c.dim)},
        )

    @property
    def parameters(self) -> dict[str, Tensor]:
        """embedding: W_e (C, d')."""
        source = philox("categorical embedding", self.config.task_seed)
        shape = (self.config.classes, self.config.embedding)
        return {"embedding": torch.from_numpy(source.standard_normal(shape))}

    @abstractmethod
    def function(self, draws: Draws, x: Tensor, embedding: Tensor) -> Tensor:
        """f(x) (n, N + Q, d') of each context at its inputs x (n, N + Q, d)."""

    @abstractmethod
    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """x, choice, order and shape; see `Draws`."""

    @abstractmethod
    def draw(self, n: int, generator: torch.Generator, device: torch.device) -> Draws:
        """The same for training, float64."""

    def sample(
        self, n: int, generator: torch.Generator, device: torch.device, dtype: torch.dtype
    ) -> Batch:
        """n contexts: fresh ones, or from the pool in shuffled passes over it.

        Every call begins a new pass, so passes are whole where n, which is a recipe's chunk times
        its batch, is a multiple of L; else the last one is cut short.
        """
        if self.config.pool is None:
            batch = self.arrange(self.draw(n, generator, device), dtype)
            return batch._replace(truth={})
        pool = self._pool(device, dtype)
        passes = -(-n // self.config.pool)
        order = [torch.randperm(self.config.pool, generator=generator, device=device)
                 for _ in range(passes)]  # fmt: skip
        chosen = torch.cat(order)[:n]
        return Batch(map_tensors(lambda t: t[chosen], pool.prompt), pool.target[chosen])

    def _pool(self, device: torch.device, dtype: torch.dtype) -> Batch:
        """The L training contexts, from `task_seed`: the same on every device."""
        if (device, dtype) not in self._pools:
            c, cpu = self.config, torch.device("cpu")
            assert c.pool is not None
            generator = torch_generator(cpu, "categorical pool", self.name, c.task_seed)
            made = self.arrange(self.draw(c.pool, generator, cpu), dtype)
            prompt = map_tensors(lambda t: t.to(device), made.prompt)
            self._pools[device, dtype] = Batch(prompt, made.target.to(device))
        return self._pools[device, dtype]

    def evaluation_set(self, n: int, seed: int, dtype: torch.dtype) -> list[Batch]:
        """One batch of n contexts; x is rounded once, categories are drawn in float64 from that."""
        draws = {k: torch.from_numpy(v) for k, v in self.evaluation_draws(n, seed).items()}
        return [self.arrange(Draws(**draws), dtype)]

    def arrange(self, draws: Draws, dtype: torch.dtype) -> Batch:
        """The contexts of these draws: x is rounded once, y drawn in float64 from that."""
        examples = self.config.examples
        stated = draws.x.to(dtype)
        embedding = self.parameters["embedding"].to(draws.x)
        logits = self.function(draws, stated.double(), embedding) @ embedding.mT
        probabilities = logits.log_softmax(dim=2)
        edges = probabilities.exp().cumsum(dim=2)
        # The last edge may round below 1.
        y = (draws.choice.unsqueeze(2) >= edges).sum(dim=2).clamp(max=self.config.classes - 1)
        prompt = Categorical(stated[:, :examples], y[:, :examples], stated[:, examples:])
        return Batch(prompt, y[:, examples:], {"log_probabilities": probabilities[:, examples:]})

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The mean cross-entropy of the queries' categories, (B,)."""
        return -_of_class(prediction.log_softmax(dim=2), target).mean(dim=1)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """accuracy, and nll, the cross-entropy, each the mean over the queries, (B,)."""
        right = prediction.argmax(dim=2) == batch.target
        return {
            "accuracy": right.double().mean(dim=1),
            "nll": self.loss(prediction, batch.target),
        }

    def reference(self, batch: Batch) -> Tensor:
        """log p(c | x) under the true f and W_e."""
        return batch.truth["log_probabilities"]

    def floor(self, batch: Batch) -> dict[str, Tensor]:
        """The bound: the largest probability ("mean max probability"), and the entropy."""
        logs = batch.truth["log_probabilities"]
        return {
            "accuracy": logs.exp().amax(dim=2).mean(dim=1),
            "nll": -(logs.exp() * logs).sum(dim=2).mean(dim=1),
        }


def _of_class(values: Tensor, target: Tensor) -> Tensor:
    """The value of each class named in target (B, Q), from (B, Q, C)."""
    return values.gather(2, target.unsqueeze(2))[..., 0]


def chosen_classes(order: Tensor, count: int) -> Tensor:
    """The first `count` of each context's categories in a random order, (n, count)."""
    return order.argsort(dim=1)[:, :count]


def standard_draws(
    config: Any, n: int, generator: torch.Generator, device: torch.device
) -> tuple[Tensor, Tensor]:
    """choice (n, N + Q) and order (n, C), uniform, for training."""
    points = config.examples + config.queries
    choice = uniform((n, points), generator, device)
    return choice, uniform((n, config.classes), generator, device)


def uniform(shape: tuple[int, ...], generator: torch.Generator, device: torch.device) -> Tensor:
    """Float64 draws on [0, 1)."""
    return torch.rand(shape, generator=generator, device=device, dtype=torch.float64)


def normal(shape: tuple[int, ...], generator: torch.Generator, device: torch.device) -> Tensor:
    """Float64 draws from N(0, 1)."""
    return torch.randn(shape, generator=generator, device=device, dtype=torch.float64)


def standard_evaluation_draws(stream: str, config: Any, n: int, seed: int) -> dict[str, np.ndarray]:
    """The same for evaluation."""
    points = config.examples + config.queries
    return {
        "choice": philox(stream, "choice", seed).uniform(size=(n, points)),
        "order": philox(stream, "order", seed).uniform(size=(n, config.classes)),
    }
