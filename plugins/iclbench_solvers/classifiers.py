"""Classical in-context classifiers that predict log-probabilities (B, Q, C).

The answer may be a class that is absent from the context, so every classifier mixes in the uniform
distribution with weight `smoothing`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import one_hot

from iclbench import Config, Signature, Solver

from .scales import median_distance, smoothed, smoothing_weight


class ClassifierConfig(Config):
    """Smoothing, common to all classifiers."""

    smoothing: float | None = Field(
        None,
        gt=0,
        le=1,
        description="weight of the uniform distribution; null: C/2 / (N + C/2)",
    )


class Classifier(Solver):
    """A solver of `class` tasks, on prompts with x, y (classes) and query."""

    Config = ClassifierConfig

    def supports(self, signature: Signature, config: Any) -> str | None:
        """It needs x, y and query, and a task that asks for a class."""
        missing = {"x", "y", "query"} - set(getattr(signature.prompt, "_fields", ()))
        if missing:
            return f"it needs {', '.join(sorted(missing))}, which the task's prompts lack"
        return None if signature.target == "class" else f"it answers class, not {signature.target}"

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module without parameters."""
        return _ClassifierModule(self, signature.classes, config)

    def counted(self, examples: int, config: Any) -> int:
        """The number of examples that probabilities are counted from, for the smoothing."""
        return examples

    @abstractmethod
    def probabilities(self, x: Tensor, labels: Tensor, query: Tensor, config: Any) -> Tensor:
        """(B, Q, C) from x (B, N, D), one-hot labels (B, N, C) and query (B, Q, D)."""


class _ClassifierModule(nn.Module):
    def __init__(self, classifier: Classifier, classes: int, config: Any) -> None:
        super().__init__()
        self.classifier, self.classes, self.config = classifier, classes, config

    def forward(self, prompt: Any) -> Tensor:
        labels = one_hot(prompt.y, self.classes).to(prompt.x)
        probabilities = self.classifier.probabilities(prompt.x, labels, prompt.query, self.config)
        counted = self.classifier.counted(prompt.x.shape[1], self.config)
        weight = smoothing_weight(self.config.smoothing, counted, self.classes)
        return smoothed(probabilities, weight).log()


class ClassFrequency(Classifier):
    """The class frequencies in the context, whatever the query; in a text, those of its tokens."""

    name = "class-frequency"
    chance = True

    def supports(self, signature: Signature, config: Any) -> str | None:
        """As `Classifier`; also texts."""
        if signature.target == "token":
            fields = getattr(signature.prompt, "_fields", ())
            return None if "ids" in fields else "it needs ids, which the task's prompts lack"
        return super().supports(signature, config)

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module without parameters."""
        if signature.target == "token":
            return _IdFrequency(signature, config)
        return super().build(signature, config)

    def probabilities(
        self, x: Tensor, labels: Tensor, query: Tensor, config: ClassifierConfig
    ) -> Tensor:
        """See `Classifier.probabilities`."""
        return labels.mean(dim=1, keepdim=True).expand(-1, query.shape[1], -1)


class _IdFrequency(nn.Module):
    def __init__(self, signature: Signature, config: ClassifierConfig) -> None:
        super().__init__()
        self.vocabulary, self.smoothing = signature.vocabulary, config.smoothing
        self.readout, self.dtype = list(signature.readout), torch.get_default_dtype()

    def forward(self, prompt: Any) -> Tensor:
        """Log-probabilities (B, P, V) of the ids up to each read-out."""
        ids = prompt.ids.unsqueeze(2)
        zeros = ids.new_zeros(*prompt.ids.shape, self.vocabulary, dtype=self.dtype)
        counts = zeros.scatter_(2, ids, 1.0).cumsum_(dim=1)[:, self.readout]
        examples = torch.tensor(self.readout, device=ids.device)[:, None] + 1
        weight = smoothing_weight(self.smoothing, examples, self.vocabulary)
        return smoothed(counts / examples, weight).log()


class NearestMeanConfig(ClassifierConfig):
    """The temperature."""

    # An eighth: iclbench sweep plugins/iclbench_solvers/sweeps/defaults.toml (seeds 1000–1002).
    temperature: float | None = Field(
        None,
        gt=0,
        description="τ of softmax(−‖x − μ_c‖² / 2τ); null: m²/8, with the median distance m "
        "between two examples",
    )


class NearestClassMean(Classifier):
    """softmax(−‖x − μ_c‖² / 2τ) over the classes in the context; μ_c is the mean x of class c."""

    name = "nearest-class-mean"
    Config = NearestMeanConfig

    def probabilities(
        self, x: Tensor, labels: Tensor, query: Tensor, config: NearestMeanConfig
    ) -> Tensor:
        """See `Classifier.probabilities`."""
        count = labels.sum(dim=1)
        means = labels.mT @ x / count.clamp(min=1).unsqueeze(2)
        distances = _squared_distances(query, means)
        absent = (count == 0).unsqueeze(1)
        default = median_distance(x).square() / 8.0
        temperature = default if config.temperature is None else config.temperature
        scores = (-distances / (2.0 * temperature)).masked_fill(absent, -math.inf)
        return scores.softmax(dim=2)


class NeighboursConfig(ClassifierConfig):
    """The number of neighbours."""

    neighbours: int | None = Field(
        None, ge=1, description="number of neighbours, all examples if fewer; null: √N rounded up"
    )


class NearestNeighbourVote(Classifier):
    """The share of each class among the nearest examples."""

    name = "nearest-neighbour-vote"
    Config = NeighboursConfig

    def counted(self, examples: int, config: NeighboursConfig) -> int:
        """k, the number of votes."""
        default = math.ceil(math.sqrt(examples))
        return min(default if config.neighbours is None else config.neighbours, examples)

    def probabilities(
        self, x: Tensor, labels: Tensor, query: Tensor, config: NeighboursConfig
    ) -> Tensor:
        """See `Classifier.probabilities`."""
        count = self.counted(x.shape[1], config)
        nearest = _squared_distances(query, x).topk(count, dim=2, largest=False).indices
        votes = x.new_zeros(*nearest.shape[:2], x.shape[1]).scatter(2, nearest, 1.0 / count)
        return votes @ labels


class KernelConfig(ClassifierConfig):
    """The bandwidth."""

    # 0.4: iclbench sweep plugins/iclbench_solvers/sweeps/defaults.toml (seeds 1000–1002). More
    # suits categorical better, less imagenet.
    bandwidth: float | None = Field(
        None,
        gt=0,
        description="h of exp(−‖x − x'‖² / 2h²); null: 0.4 times the median distance between two "
        "examples",
    )


class KernelRegression(Classifier):
    """Nadaraya–Watson: class shares among the examples, weighted by an RBF kernel."""

    name = "kernel-regression"
    Config = KernelConfig

    def probabilities(
        self, x: Tensor, labels: Tensor, query: Tensor, config: KernelConfig
    ) -> Tensor:
        """See `Classifier.probabilities`."""
        bandwidth = 0.4 * median_distance(x) if config.bandwidth is None else config.bandwidth
        scores = -_squared_distances(query, x) / (2.0 * bandwidth**2)
        return scores.softmax(dim=2) @ labels


class LogisticConfig(ClassifierConfig):
    """The penalty and the optimizer."""

    # A half: iclbench sweep plugins/iclbench_solvers/sweeps/defaults.toml (seeds 1000–1002).
    penalty: float | None = Field(
        None,
        gt=0,
        description="λ of Σ cross-entropy + ½λ‖W‖², without the biases; null: half the mean ‖x‖²",
    )
    steps: int = Field(200, ge=0, description="number of accelerated gradient steps")


class LogisticRegression(Classifier):
    """Multinomial logistic regression on each context.

    Nesterov's method from 0 with step size 1/L, L = ½λmax(X̃ᵀX̃) + λ; X̃ is X with a column of
    ones. All contexts are fitted in one batch.
    """

    name = "logistic-regression"
    Config = LogisticConfig

    def probabilities(
        self, x: Tensor, labels: Tensor, query: Tensor, config: LogisticConfig
    ) -> Tensor:
        """See `Classifier.probabilities`."""
        inputs = _with_ones(x)
        gram = inputs @ inputs.mT if x.shape[1] < inputs.shape[2] else inputs.mT @ inputs
        largest = torch.linalg.eigvalsh(gram)[:, -1, None, None]
        penalty = 0.5 * x.square().sum(dim=2).mean(dim=1)[:, None, None]
        if config.penalty is not None:
            penalty = torch.full_like(penalty, config.penalty)
        size = 1.0 / (0.5 * largest + penalty)
        biases = torch.zeros_like(inputs[:1, :1]).mT
        biases[:, -1] = 1.0
        # The size 1/L above may count λ for the biases too: an upper bound of L is safe.
        decay = penalty * (1.0 - biases)
        absent = labels.sum(dim=1, keepdim=True) == 0
        weights = ahead = torch.zeros_like(inputs.mT @ labels)
        for step in range(config.steps):
            gradient = _loss_gradient(inputs, labels, ahead, absent) + decay * ahead
            moved = ahead - size * gradient
            ahead = moved + step / (step + 3.0) * (moved - weights)
            weights = moved
        return _softmax_of_present(_with_ones(query), weights, absent)


class ProbeConfig(ClassifierConfig):
    """The training of a probe."""

    epochs: int = Field(500, ge=0, description="number of Adam steps, each on the whole context")
    learning_rate: float = Field(1e-3, gt=0, description="learning rate of Adam")


class LinearProbe(Classifier):
    """A linear layer with biases, trained from 0 on each context.

    Adam (β = 0.9, 0.999, ε = 1e-8) on the mean cross-entropy without a penalty. The paper trains
    500 epochs per context and does not state the optimizer (Wang et al., 6.2). All contexts are
    trained in one batch.
    """

    name = "linear-probe"
    Config = ProbeConfig

    def probabilities(
        self, x: Tensor, labels: Tensor, query: Tensor, config: ProbeConfig
    ) -> Tensor:
        """See `Classifier.probabilities`."""
        inputs = _with_ones(x)
        absent = labels.sum(dim=1, keepdim=True) == 0
        weights = mean = square = torch.zeros_like(inputs.mT @ labels)
        for epoch in range(1, config.epochs + 1):
            gradient = _loss_gradient(inputs, labels, weights, absent) / x.shape[1]
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient.square()
            size = (square / (1.0 - 0.999**epoch)).sqrt() + 1e-8
            weights = weights - config.learning_rate * mean / (1.0 - 0.9**epoch) / size
        return _softmax_of_present(_with_ones(query), weights, absent)


def _loss_gradient(inputs: Tensor, labels: Tensor, weights: Tensor, absent: Tensor) -> Tensor:
    """The gradient of the summed cross-entropy, (B, D, C); `absent` (B, 1, C) masks classes."""
    return inputs.mT @ (_softmax_of_present(inputs, weights, absent) - labels)


def _softmax_of_present(inputs: Tensor, weights: Tensor, absent: Tensor) -> Tensor:
    """softmax(inputs · weights) over the classes that are present, (B, N, C)."""
    return (inputs @ weights).masked_fill(absent, -math.inf).softmax(dim=2)


def _with_ones(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=2)


def _squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """‖a − b‖² of every pair, (B, A, N), from exact differences."""
    return (a.unsqueeze(2) - b.unsqueeze(1)).square().sum(dim=3)
